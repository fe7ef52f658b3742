// The TypeScript SDK 2.x as a client, in the era that the second argument names: "legacy" or "auto".
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { answer, journalSays, run, target } from "./scenario.mjs";

const { url, command, era } = target();
const transport = url
  ? new StreamableHTTPClientTransport(url)
  : new StdioClientTransport({ command: command[0], args: command.slice(1), env: process.env });
let changed;
const client = new Client(
  { name: "peer-ts-2", version: "1.0.0" },
  {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: era },
    listChanged: { tools: { onChanged: (error) => changed?.(!error) } },
  },
);
client.setRequestHandler("elicitation/create", () => answer);
await client.connect(transport);
await run({
  sdk: client,
  protocol: () => client.getNegotiatedProtocolVersion(),
  listTools: () => client.listTools(undefined, { cacheMode: "bypass" }),
  callTool: (name, args, options) => client.callTool({ name, arguments: args }, options),
  nextChange: () => new Promise((resolve) => (changed = resolve)),
  async nextUpdate(uri) {
    const updated = new Promise((resolve) =>
      client.setNotificationHandler("notifications/resources/updated", ({ params }) => resolve(params.uri)),
    );
    await (era === "legacy" ? client.subscribeResource({ uri }) : client.listen({ resourceSubscriptions: [uri] }));
    return { uri: updated };
  },
  waiting: () => journalSays("waiting"),
  cancelArrived: () => journalSays("cancelled"),
  close: () => client.close(),
});
