// expect: value 0
const r = /a/gy; r.lastIndex = 2 ** 53; r.test('aaa'); r.lastIndex = { valueOf() { r.compile?.('b'); return 0 } }; 'aaa'.replace(r, 'b'); return 0
