// expect: thrown TypeError
return Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0)
