// As little of a server as MCP allows, which runs code as a TypeScript sandbox in Deno would: in a Worker with no permissions,
// a new one for each call. deno run --allow-net --unstable-worker-options deno_echo.mjs port

const source = `
  onmessage = async ({ data }) => {
    const run = new (async function () {}).constructor("args", data.code);
    postMessage(JSON.stringify(await run(JSON.parse(data.args))));
  };`;
const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));

const run = (code, args) =>
  new Promise((resolve, reject) => {
    const worker = new Worker(url, { type: "module", deno: { permissions: "none" } });
    worker.onerror = (event) => reject(new Error(event.message));
    worker.onmessage = ({ data }) => {
      worker.terminate();
      resolve(data);
    };
    worker.postMessage({ code, args });
  });

const tool = { name: "same", inputSchema: { type: "object", properties: { text: { type: "string" } } } };

async function answer({ method, params }) {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "deno-worker", version: "1" },
      };
    case "tools/list":
      return { tools: [tool] };
    case "tools/call": {
      const text = await run("return args", JSON.stringify(params.arguments));
      return { content: [{ type: "text", text }], structuredContent: JSON.parse(text) };
    }
  }
}

Deno.serve({ hostname: "127.0.0.1", port: Number(Deno.args[0]), onListen: () => {} }, async (request) => {
  const { id, ...message } = await request.json();
  if (id === undefined) {
    return new Response(null, { status: 202 });
  }
  return Response.json({ jsonrpc: "2.0", id, result: await answer(message) });
});
