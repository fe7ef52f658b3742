const results = await Promise.allSettled([mcp.api.get({ n: 1 }), mcp.fail.now({}), mcp.api.get({ n: 2 })]);
return results.map((r) => r.status === "fulfilled" ? r.value.value : (r.reason as Error).message);
