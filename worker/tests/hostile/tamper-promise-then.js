// expect: value 5
Promise.prototype.then = () => { throw new Error('no') }; return await mcp.test.echo(5)
