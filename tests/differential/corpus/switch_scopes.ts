// args: [{"kind":"a"},{"kind":"b"},{"kind":"c"},{"kind":"zzz"}]
const out: unknown[] = [];
switch (args.kind as string) {
  case "a": {
    const x = await mcp.s.a({});
    out.push(x.target);
  }
  case "b":
    out.push((await mcp.s.b({})).target);
    break;
  default:
    out.push("default");
  case 'c': case "d":
    let y = await mcp.s.c({});
    out.push(y.target);
}
switch (true) { case out.length > 1: out.push("many"); break; case out.length === 1: out.push("one") }
switch (out.length) {}
return out;
