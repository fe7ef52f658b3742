// expect: limit calls
for (;;) { try { await mcp.test.fail({}) } catch { } }
