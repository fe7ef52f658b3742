// What the conformance suite calls and reads, at a server behind the proxy.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import * as z from "zod";
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const text = (words) => ({ type: "text", text: words });
const image = { type: "image", data: pixel, mimeType: "image/png" };
const resource = (uri, mimeType, words) => ({ type: "resource", resource: { uri, mimeType, text: words } });
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

const anything = z.object({}).passthrough();
const choices = ["option1", "option2", "option3"];
const titled = choices.map((choice, at) => ({ const: choice, title: `Option ${at + 1}` }));
const elicit = async ({ sendRequest }, message, properties, required) => {
  const params = { message: message ?? "", requestedSchema: { type: "object", properties, required } };
  const { action, content } = await sendRequest({ method: "elicitation/create", params }, anything);
  return { content: [text(`User response: action=${action}, content=${JSON.stringify(content ?? {})}`)] };
};

const empty = { type: "object", properties: {} };
const person = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: { $anchor: "addressDef", type: "object", properties: { street: { type: "string" }, city: { type: "string" } } },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

let changes = 0;
let promptChanges = 0;
const capabilities = {
  completions: {},
  logging: {},
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  tools: { listChanged: true },
};
const server = new Server({ name: "conformance", version: "1.0.0" }, { capabilities });
const tools = {
  test_simple_text: () => ({ content: [text("This is a simple text response for testing.")] }),
  test_image_content: () => ({ content: [image] }),
  test_audio_content: () => ({ content: [{ type: "audio", data: silence, mimeType: "audio/wav" }] }),
  test_embedded_resource: () => ({
    content: [resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
  }),
  test_multiple_content_types: () => ({
    content: [
      text("Multiple content types test:"),
      image,
      resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
  }),
  test_error_handling: () => ({
    isError: true,
    content: [text("This tool intentionally returns an error for testing")],
  }),
  async test_tool_with_progress(_, { _meta, sendNotification }) {
    for (const progress of [0, 50, 100]) {
      const params = { progressToken: _meta?.progressToken, progress, total: 100 };
      if (_meta?.progressToken !== undefined) await sendNotification({ method: "notifications/progress", params });
      await pause();
    }
    return { content: [text("done")] };
  },
  json_schema_2020_12_tool: () => ({ content: [text("fine")] }),
  async test_logging_tool(_, { sendNotification }) {
    const params = { level: "info", data: "only for clients that ask for logs" };
    await sendNotification({ method: "notifications/message", params });
    return { content: [text("logged")] };
  },
  async test_tool_with_logging(_, { sendNotification }) {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await sendNotification({ method: "notifications/message", params: { level: "info", data } });
      await pause();
    }
    return { content: [text("logged")] };
  },
  // A client of the newer era can't be asked by a request.
  test_streaming_elicitation: (_, extra) => elicit(extra, "Who are you?", {}),
  test_elicitation: ({ message }, extra) =>
    elicit(extra, message, { username: { type: "string" }, email: { type: "string" } }, ["username", "email"]),
  test_elicitation_sep1034_defaults: (_, extra) =>
    elicit(extra, "Please review and update the form fields with defaults", {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true },
    }),
  test_elicitation_sep1330_enums: (_, extra) =>
    elicit(extra, "Please choose", {
      untitledSingle: { type: "string", enum: choices },
      titledSingle: { type: "string", oneOf: titled },
      legacyEnum: { type: "string", enum: choices, enumNames: titled.map(({ title }) => title) },
      untitledMulti: { type: "array", items: { type: "string", enum: choices } },
      titledMulti: { type: "array", items: { anyOf: titled } },
    }),
  async test_sampling({ prompt }, { sendRequest }) {
    const params = { messages: [{ role: "user", content: text(prompt ?? "") }], maxTokens: 100 };
    const { content } = await sendRequest({ method: "sampling/createMessage", params }, anything);
    return { content: [text(`LLM response: ${content.text}`)] };
  },
  async test_trigger_tool_change() {
    changes++;
    await server.sendToolListChanged();
    return { content: [text("changed")] };
  },
  async test_trigger_prompt_change() {
    promptChanges++;
    await server.sendPromptListChanged();
    return { content: [text("changed")] };
  },
};
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [...Object.keys(tools), ...(changes % 2 ? ["test_that_comes_and_goes"] : [])].map((name) => ({
    name,
    description: "For the conformance suite",
    inputSchema: name.startsWith("json_schema") ? person : empty,
  })),
}));
server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => tools[params.name](params.arguments ?? {}, extra));

const resources = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: pixel },
  "test://watched-resource": { mimeType: "text/plain", text: "Watched." },
};
server.setRequestHandler(ListResourcesRequestSchema, () => ({
  resources: Object.entries(resources).map(([uri, { mimeType }]) => ({ uri, name: uri, description: "For tests", mimeType })),
}));
server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
  resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" }],
}));
server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
  const id = uri.match(/^test:\/\/template\/(.*)\/data$/)?.[1];
  if (id) return { contents: [{ uri, mimeType: "application/json", text: JSON.stringify({ id, templateTest: true }) }] };
  if (uri in resources) return { contents: [{ uri, ...resources[uri] }] };
  throw Object.assign(new Error("Resource not found"), { code: -32002, data: { uri } });
});
server.setRequestHandler(SubscribeRequestSchema, () => ({}));
server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));

const said = (...contents) => ({ messages: contents.map((content) => ({ role: "user", content })) });
const prompts = {
  test_simple_prompt: () => said(text("This is a simple prompt for testing.")),
  test_prompt_with_arguments: ({ arg1, arg2 }) => said(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  test_prompt_with_embedded_resource: ({ resourceUri }) =>
    said(
      resource(resourceUri, "text/plain", "Embedded resource content for testing."),
      text("Please process the embedded resource above."),
    ),
  test_prompt_with_image: () => said(image, text("Please analyze the image above.")),
};
const wanted = {
  test_prompt_with_arguments: ["arg1", "arg2"],
  test_prompt_with_embedded_resource: ["resourceUri"],
};
server.setRequestHandler(ListPromptsRequestSchema, () => ({
  prompts: [...Object.keys(prompts), ...(promptChanges % 2 ? ["test_that_comes_and_goes"] : [])].map((name) => ({
    name,
    description: "For the conformance suite",
    arguments: wanted[name]?.map((argument) => ({ name: argument, description: "For tests", required: true })),
  })),
}));
server.setRequestHandler(GetPromptRequestSchema, ({ params }) => prompts[params.name](params.arguments ?? {}));
server.setRequestHandler(CompleteRequestSchema, ({ params: { argument } }) => ({
  completion: { values: ["paris", "park", "party"].filter((word) => word.startsWith(argument.value)), hasMore: false },
}));
await server.connect(new StdioServerTransport());
