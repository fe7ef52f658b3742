// What every TypeScript client does with the proxy; what it saw is printed as JSON for the test to judge.
//
// `client` wraps an SDK: listTools(), callTool(name, args, {signal, onprogress}), nextChange(), waiting(),
// cancelArrived(), close().
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

  seen.asked = await client.callTool("mcp__asking__greet", { greeting: "Hello" });

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
