// expect: value 5
globalThis.__pml = { at: () => () => 5 }; return await __pml.at('n1', mcp.test.echo)(1)
