// expect: thrown TypeError
const g = (function* () { g.next(); yield 1 })(); g.next()
