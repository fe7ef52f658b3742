// expect: value 5
Array.prototype[Symbol.iterator] = function* () { throw new Error('no') }; return await mcp.test.echo(5)
