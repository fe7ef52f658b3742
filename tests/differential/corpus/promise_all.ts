const [a, b] = await Promise.all([
  mcp.api.fetch({ url: "a" }),
  mcp.api.fetch({ url: "b" }),
]);
return [a.content, b.content];
