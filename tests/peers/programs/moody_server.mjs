// An MCP server that does on request what servers do at the worst moment. Its one argument, if any, is a file to which
// it appends what happens to it.
import { appendFileSync, existsSync } from "node:fs";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import * as z from "zod";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const journal = process.argv[2];
const note = (what) => journal && appendFileSync(journal, what + "\n");
note(`start ${process.pid}`);
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    note(signal);
    if (process.env.MOODY_STUBBORN !== "yes") process.exit(0);
  });
}
process.stdin.on("end", () => {
  note("end of input");
  if (process.env.MOODY_STUBBORN !== "yes") process.exit(0);
});
if (process.env.MOODY_START === "crash") {
  console.error(`no good: token ${process.env.MOODY_TOKEN}`);
  process.exit(3);
}
if (process.env.MOODY_START === "old") {
  process.stdin.on("data", (data) => data.includes("server/discover") && process.exit(1));
}
if (process.env.MOODY_STUBBORN === "yes") setInterval(() => {}, 1000);

const object = { type: "object" };
const tools = ["add_tools", "ask", "burst", "cancellable", "die", "complain", "environment", "late", "log", "once", "raw"].map((name) => ({
  name,
  description: "For tests",
  inputSchema: object,
}));
const server = new Server(
  { name: "moody", version: "1.0.0" },
  { capabilities: { logging: {}, tools: { listChanged: true } } },
);
const pageSize = 3;
server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
  const start = Number(params?.cursor ?? 0);
  const end = start + pageSize;
  return { tools: tools.slice(start, end), ...(end < tools.length && { nextCursor: String(end) }) };
});
const say = (text) => ({ content: [{ type: "text", text }] });
const answers = {
  async add_tools({ names }) {
    tools.push(...names.map((name) => ({ name, inputSchema: object })));
    await server.sendToolListChanged();
    return say("added");
  },
  // What the client says to requests of ours.
  async ask({ requests }, { sendRequest }) {
    const answers = requests.map(async (request) => {
      try {
        return await sendRequest(request, z.object({}).passthrough());
      } catch (error) {
        return { code: error.code };
      }
    });
    return say(JSON.stringify(await Promise.all(answers)));
  },
  // Progress as fast as it can, then at once the result.
  async burst({ steps }, { _meta, sendNotification }) {
    for (let progress = 1; progress <= steps; progress++) {
      const params = { progressToken: _meta.progressToken, progress, total: steps };
      await sendNotification({ method: "notifications/progress", params });
    }
    return say("done");
  },
  cancellable: (_, { signal }) =>
    new Promise((resolve) => {
      note("waiting");
      signal.addEventListener("abort", () => {
        note(`cancelled: ${signal.reason}`);
        resolve(say("too late"));
      });
    }),
  die({ status }) {
    note("dying");
    console.error("I can't go on");
    process.exit(status);
  },
  complain({ lines }) {
    for (let line = 0; line < lines; line++) console.error(`complaint ${line}`);
    return say("complained");
  },
  environment: () => say(JSON.stringify(process.env)),
  // Silent until the file is there; then progress from 0 on.
  async late({ file }, { _meta, sendNotification }) {
    while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 20));
    for (let progress = 0; progress <= 3; progress++) {
      const params = { progressToken: _meta.progressToken, progress, total: 3 };
      await sendNotification({ method: "notifications/progress", params });
    }
    return say("at last");
  },
  async log({ level, data }, { sendNotification }) {
    await sendNotification({ method: "notifications/message", params: { level, data } });
    return say("logged");
  },
  once() {
    note("once");
    return new Promise(() => {});
  },
  raw: ({ result }) => result,
};
server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => answers[params.name](params.arguments ?? {}, extra));
await server.connect(new StdioServerTransport());
