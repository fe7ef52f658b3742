// expect: value 0|thrown
const b = new ArrayBuffer(64, { maxByteLength: 128 }); const t = new Float64Array(b); t.sort(() => { b.resize(8); return 1 }); return 0
