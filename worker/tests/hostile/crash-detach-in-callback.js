// expect: thrown TypeError
const b = new ArrayBuffer(16); const t = new Uint8Array(b); t.fill({ valueOf() { b.transfer?.(0); return 1 } }); return 0
