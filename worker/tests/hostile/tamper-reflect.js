// expect: value 5
Reflect.apply = null; Reflect.get = null; Reflect.defineProperty = null; return await __pml.at('n', mcp.test.echo)(5)
