return mcp.p.one({ value: 1 })
  .then((r) => mcp.p.two({ value: r.value + 1 }))
  .then((r) => r.value)
  .finally(() => mcp.p.done({}));
