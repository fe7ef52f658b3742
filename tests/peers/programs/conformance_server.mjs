// The tools that the conformance suite calls, at a server behind the proxy.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import * as z from "zod";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const text = (words) => ({ type: "text", text: words });
const image = { type: "image", data: pixel, mimeType: "image/png" };
const resource = (uri, mimeType, words) => ({ type: "resource", resource: { uri, mimeType, text: words } });
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

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
const server = new Server({ name: "conformance", version: "1.0.0" }, { capabilities: { logging: {}, tools: { listChanged: true } } });
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
    const params = { level: "info", data: "for nobody: no client asked for logs" };
    await sendNotification({ method: "notifications/message", params });
    return { content: [text("logged")] };
  },
  // Whoever calls the proxy must not be asked what only the proxy was asked.
  async test_streaming_elicitation(_, { sendRequest }) {
    const params = { message: "Who are you?", requestedSchema: { type: "object", properties: {} } };
    const { action } = await sendRequest({ method: "elicitation/create", params }, z.object({ action: z.string() }));
    return { content: [text(action)] };
  },
  async test_trigger_tool_change() {
    changes++;
    await server.sendToolListChanged();
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
await server.connect(new StdioServerTransport());
