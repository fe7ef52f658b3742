// expect: thrown x
const e = new Error('m'); Object.defineProperty(e, 'name', { get: () => 'x' }); throw e
