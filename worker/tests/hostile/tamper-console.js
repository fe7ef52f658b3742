// expect: value 1
console.log = null; globalThis.console = { log() { throw 1 } }; try { console.log(1) } catch { } return 1
