// expect: value 1
const a = {}; a.r = new WeakRef(a); const m = new WeakMap([[a, a]]); return m.get(a) === a ? 1 : 0
