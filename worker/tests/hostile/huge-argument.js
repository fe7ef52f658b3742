// expect: limit output|memory
await mcp.test.echo('x'.repeat(3e6))
