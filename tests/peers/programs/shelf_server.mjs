// An MCP server of the 2025-11-25 era with resources and prompts, all of which may be another such server's too. Its
// arguments are its title, by which their contents differ, and a file to which it appends what happens to it.
import { appendFileSync } from "node:fs";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  ElicitResultSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

const [title, journal] = process.argv.slice(2);
const note = (what) => appendFileSync(journal, what + "\n");
const announces = process.env.SHELF_SILENT !== "yes";
const capabilities = {
  completions: {},
  prompts: { listChanged: announces },
  resources: { listChanged: announces, subscribe: true },
  tools: {},
};
const server = new Server({ name: "shelf", version: "1.0.0" }, { capabilities });

const pages = (items, key) => ({ params }) => {
  const start = Number(params?.cursor ?? 0);
  return { [key]: items.slice(start, start + 2), ...(start + 2 < items.length && { nextCursor: String(start + 2) }) };
};
const annotated = {
  annotations: { audience: ["user"], priority: 0.5 },
  icons: [{ src: "https://example.com/icon.png", mimeType: "image/png" }],
  _meta: { "example.com/shelf": 1 },
};
const books = ["one", "two", "three"].map((name) => ({
  uri: `shelf://book/${name}`,
  name,
  title: `Book ${name}`,
  description: "For tests",
  mimeType: "text/plain",
  size: 3,
  ...annotated,
}));
// Not valid: it has no name.
if (process.env.SHELF_INVALID === "yes") books.push({ uri: "shelf://nameless" });
server.setRequestHandler(ListResourcesRequestSchema, pages(books, "resources"));
const templates = [{ uriTemplate: "shelf://page/{number}{?as}", name: "page", title: "A page", ...annotated }];
server.setRequestHandler(ListResourceTemplatesRequestSchema, pages(templates, "resourceTemplates"));

const ask = async ({ sendRequest }) => {
  const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
  const params = { message: "Who reads?", requestedSchema };
  const { action, content } = await sendRequest({ method: "elicitation/create", params }, ElicitResultSchema);
  return content?.name ?? action;
};
// Progress, and then nothing until it is cancelled.
const wait = async ({ _meta, sendNotification, signal }) => {
  if (_meta?.progressToken !== undefined) {
    const params = { progressToken: _meta.progressToken, progress: 1, total: 2 };
    await sendNotification({ method: "notifications/progress", params });
  }
  note("waiting");
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  note(`cancelled: ${signal.reason}`);
};
const large = "x".repeat(3_000_000);
server.setRequestHandler(ReadResourceRequestSchema, async ({ params: { uri } }, extra) => {
  const contents = (fields) => ({ contents: [{ uri, mimeType: "text/plain", ...fields }], _meta: { of: title } });
  if (uri === "shelf://ask") return contents({ text: `${title} for ${await ask(extra)}` });
  if (uri === "shelf://wait") return contents({ text: String(await wait(extra)) });
  if (uri === "shelf://large") return contents({ text: large });
  if (uri === "shelf://blob") return contents({ mimeType: "image/png", blob: "AAEC/w==", _meta: { width: 1 } });
  if (uri.startsWith("shelf://page/")) return contents({ text: `${title}: ${uri}` });
  if (!books.some((book) => book.uri === uri)) {
    throw Object.assign(new Error("Resource not found"), { code: -32002, data: { uri } });
  }
  return contents({ text: `${title}: ${uri}` });
});
for (const [schema, what] of [[SubscribeRequestSchema, "subscribe"], [UnsubscribeRequestSchema, "unsubscribe"]]) {
  server.setRequestHandler(schema, ({ params: { uri } }) => {
    if (uri === "shelf://forbidden") throw Object.assign(new Error("Not this one"), { code: -32050, data: { uri } });
    note(`${what} ${uri}`);
    return {};
  });
}

const text = (words) => ({ type: "text", text: words });
const embedded = { type: "resource", resource: { uri: "shelf://book/two", mimeType: "text/plain", text: title } };
const link = { type: "resource_link", uri: "shelf://page/7?as=a%2Fb", name: "seven", mimeType: "text/plain" };
const prompts = [
  { name: "summary", title: "Summary", description: "For tests", arguments: [{ name: "length", required: true }], ...annotated },
  { name: "ask" },
  { name: "with space" },
  { name: "wait" },
];
delete prompts[0].annotations;
const said = (...contents) => ({ description: title, messages: contents.map((content) => ({ role: "user", content })) });
server.setRequestHandler(ListPromptsRequestSchema, pages(prompts, "prompts"));
server.setRequestHandler(GetPromptRequestSchema, async ({ params: { name, arguments: args } }, extra) => {
  if (name === "ask") return said(text(`${title} for ${await ask(extra)}`));
  if (name === "wait") return said(text(String(await wait(extra))));
  if (!prompts.some((prompt) => prompt.name === name)) throw Object.assign(new Error("No such prompt"), { code: -32602 });
  return said(text(`${title}: ${name} ${JSON.stringify(args ?? {})}`), embedded, link);
});
server.setRequestHandler(CompleteRequestSchema, ({ params: { ref, argument, context } }) => ({
  completion: { values: [title, ref.name ?? ref.uri, argument.value, JSON.stringify(context ?? {})], total: 4, hasMore: false },
}));

const tools = {
  links: () => ({ content: [text("see"), embedded, link], structuredContent: { uri: link.uri } }),
  async put({ name }) {
    books.push({ uri: `shelf://book/${name}`, name });
    if (announces) await server.sendResourceListChanged();
    return { content: [text("put")] };
  },
  async write({ name }) {
    prompts.push({ name });
    if (announces) await server.sendPromptListChanged();
    return { content: [text("written")] };
  },
  async update({ uri }) {
    await server.sendResourceUpdated({ uri });
    return { content: [text("updated")] };
  },
  die: () => process.exit(1),
};
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: "object" } })),
}));
server.setRequestHandler(CallToolRequestSchema, ({ params }) => tools[params.name](params.arguments ?? {}));
await server.connect(new StdioServerTransport());
