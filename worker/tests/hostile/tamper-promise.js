// expect: value 5
globalThis.Promise = class { constructor() { throw new Error('no') } }; return await mcp.test.echo(5)
