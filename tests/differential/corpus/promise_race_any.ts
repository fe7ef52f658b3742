const first = await Promise.race([mcp.r.one({}), mcp.r.two({})]);
const any = await Promise.any([mcp.fail.a({}), mcp.r.three({})]);
return [first.target, any.target];
