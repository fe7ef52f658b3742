// Stands between the conformance suite and the proxy and does one thing: the suite's names of tools and prompts are the
// ones of the servers behind the proxy, which the proxy lists as mcp__<server>__<name>. URIs of resources stay as they
// are: the proxy finds their server. Prints its own port.
import http from "node:http";

const proxy = new URL(process.argv[2]);
const prefix = (name) => (/^test_(input_required|missing)/.test(name) ? "mcp__n__" : "mcp__c__");
const names = /"name":"((?:test_|json_schema_2020)\w*)"/g;

const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const body = Buffer.concat(parts).toString().replace(names, (_, name) => `"name":"${prefix(name)}${name}"`);
    const headers = { ...request.headers };
    const name = headers["mcp-name"];
    if (name?.startsWith("test_")) headers["mcp-name"] = prefix(name) + name;
    // The address as the suite wrote it, but for our port, so that checks of Host and Origin are the proxy's.
    for (const header of ["host", "origin"]) {
      headers[header] = headers[header]?.replace(`:${server.address().port}`, `:${proxy.port}`);
      if (headers[header] === undefined) delete headers[header];
    }
    delete headers["content-length"];
    delete headers["transfer-encoding"];
    if (body) headers["content-length"] = Buffer.byteLength(body);
    const onward = http.request(
      { host: proxy.hostname, port: proxy.port, path: request.url, method: request.method, headers, setHost: false },
      (answer) => {
        delete answer.headers["content-length"];
        response.writeHead(answer.statusCode, answer.headers);
        response.flushHeaders();
        answer.on("data", (part) => response.write(part.toString().replaceAll(/mcp__(c|n)__/g, "")));
        answer.on("end", () => response.end());
        answer.on("error", () => response.destroy());
      },
    );
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    onward.end(body);
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
