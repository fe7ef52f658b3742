// expect: limit calls_in_flight
for (;;) mcp.test.never({})
