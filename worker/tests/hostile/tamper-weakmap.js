// expect: thrown ToolError
WeakMap.prototype.get = () => { throw 1 }; WeakMap.prototype.set = () => { throw 1 }; await mcp.test.fail()
