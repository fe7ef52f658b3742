// args: [{"kind": "a"}, {"kind": "b"}, {"kind": "c"}, {"kind": "z"}]
const seen: string[] = [];
switch (args.kind as string) {
  case "a":
    await mcp.k.a({});
    seen.push("a");
  case "b": {
    await mcp.k.b({});
    seen.push("b");
    break;
  }
  case "c": seen.push("c"); break;
}
return seen;
