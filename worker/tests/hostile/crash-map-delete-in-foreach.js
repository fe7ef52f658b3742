// expect: value 0
const m = new Map([[1, 1], [2, 2], [3, 3]]); m.forEach((v, k) => { m.clear(); m.set(k, v); m.delete(k) }); return 0
