// What every TypeScript client does with the proxy; what it saw is printed as JSON for the test to judge.
//
// `client` wraps an SDK: sdk, listTools(), callTool(name, args, {signal, onprogress}), nextChange(), nextUpdate(uri),
// waiting(), cancelArrived(), close().
export async function run(client) {
  const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
  const refusal = (promise) => promise.catch((error) => ({ code: error.code, message: error.message }));
  const seen = { protocol: client.protocol(), tools: await names() };

  const changed = client.nextChange();
  const code = "return { doubled: args.n * 2 };";
  seen.executed = await client.callTool("pml_execute", { code, name: "peer:double", args: { n: 21 } });
  seen.changed = await within(60_000, changed);
  seen.toolsAfter = await names();
  seen.called = await client.callTool("mcp__peer__double", { n: 4 });
  seen.byName = await client.callTool("pml_execute", { capability: "peer:double", args: { n: 5 } });
  seen.failed = await client.callTool("pml_execute", { code: "throw new Error('no good')" });
  seen.unknownTool = await refusal(client.callTool("no_such_tool", {}));

  seen.progress = [];
  const long = "mcp__everything__trigger-long-running-operation";
  const onprogress = ({ progress }) => seen.progress.push(progress);
  seen.long = await client.callTool(long, { duration: 1, steps: 4 }, { onprogress });

  // A server that starts slowly is missing in the first list.
  while (!(await names()).includes("mcp__asking__greet")) await pause();
  seen.asked = await client.callTool("mcp__asking__greet", { greeting: "Hello" });

  const uris = async () => (await client.sdk.listResources()).resources.map(({ uri }) => uri);
  while (!(seen.resources = await uris()).includes("pml://shelf/shelf://book/one")) await pause();
  seen.templates = (await client.sdk.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate);
  seen.read = await client.sdk.readResource({ uri: "pml://shelf/shelf://page/7?as=a%2Fb" });
  seen.noResource = await refusal(client.sdk.readResource({ uri: "pml://shelf/shelf://none" }));
  seen.prompts = (await client.sdk.listPrompts()).prompts.map(({ name }) => name);
  seen.got = await client.sdk.getPrompt({ name: "mcp__shelf__ask" });
  const ref = { type: "ref/prompt", name: "mcp__shelf__summary" };
  seen.completed = await client.sdk.complete({ ref, argument: { name: "length", value: "sh" } });
  const update = await client.nextUpdate("pml://shelf/shelf://book/one");
  await client.callTool("mcp__shelf__update", { uri: "shelf://book/one" });
  seen.updated = await within(60_000, update.uri);

  const abort = new AbortController();
  const cancelled = refusal(client.callTool("mcp__moody__cancellable", {}, { signal: abort.signal }));
  await Promise.race([client.waiting(), cancelled]);
  abort.abort("changed my mind");
  seen.cancelled = await within(60_000, cancelled.then((answer) => answer.content === undefined));
  // Before the client goes away, which would end the call too.
  seen.serverKnows = await within(60_000, client.cancelArrived());
  await client.close();
  console.log(JSON.stringify(seen));
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 20));

// What the person says to every question.
export const answer = { action: "accept", content: { name: "peer" } };

// The downstream server notes when the call has reached it.
export async function journalSays(line) {
  const { readFileSync } = await import("node:fs");
  const journal = () => {
    try {
      return readFileSync(process.env.PEER_JOURNAL, "utf8");
    } catch {
      return "";
    }
  };
  while (!journal().includes(line)) await new Promise((resolve) => setTimeout(resolve, 20).unref());
  return true;
}

export function target() {
  const [where, era] = process.argv.slice(2);
  return where.startsWith("http")
    ? { url: new URL(where), era }
    : { command: JSON.parse(where), era };
}

function within(limit, promise) {
  const late = new Promise((resolve) => setTimeout(resolve, limit, false).unref());
  return Promise.race([promise, late]);
}
