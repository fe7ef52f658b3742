// The TypeScript SDK 1.x as a client.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  ElicitRequestSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { answer, journalSays, run, target } from "./scenario.mjs";

const { url, command } = target();
const transport = url
  ? new StreamableHTTPClientTransport(url)
  : new StdioClientTransport({ command: command[0], args: command.slice(1), env: process.env });
const client = new Client({ name: "peer-ts-1", version: "1.0.0" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, () => answer);
await client.connect(transport);
await run({
  sdk: client,
  protocol: () => transport.protocolVersion ?? transport._protocolVersion ?? "2025-11-25",
  listTools: () => client.listTools(),
  callTool: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
  nextChange: () =>
    new Promise((resolve) => client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve(true))),
  async nextUpdate(uri) {
    const updated = new Promise((resolve) =>
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => resolve(params.uri)),
    );
    await client.subscribeResource({ uri });
    return { uri: updated };
  },
  waiting: () => journalSays("waiting"),
  cancelArrived: () => journalSays("cancelled"),
  close: () => client.close(),
});
