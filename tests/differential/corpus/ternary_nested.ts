// args: [{"a": true}, {"b": true}, {}]
const pick = args.a ? await mcp.t.a({}) : args.b ? await mcp.t.b({}) : null;
return pick?.target ?? "none";
