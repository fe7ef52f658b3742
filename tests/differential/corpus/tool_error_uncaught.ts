await mcp.ok.go({});
await mcp.fail.hard({ because: "test" });
return "unreachable";
