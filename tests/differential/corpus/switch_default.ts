// args: [{"n": 1}, {"n": 2}, {"n": 9}]
switch (args.n) {
  default:
    return await mcp.s.other({ n: args.n });
  case 1:
    return (await mcp.s.one({})).target;
  case 1 + 1:
    return (await mcp.s.two({})).target;
}
