// expect: value 5
Object.defineProperty(Object.prototype, 'resolve', { set() { throw new Error('no') }, configurable: true }); Object.defineProperty(Object.prototype, '0', { set() { throw new Error('no') } }); return await mcp.test.echo(5)
