// expect: thrown Error
Error.prepareStackTrace = () => { throw new Error('stack') }; Error.stackTraceLimit = 1e9; throw new Error('x')
