// expect: limit memory|thrown
return new ArrayBuffer(1, { maxByteLength: 2 ** 40 }).resize(2 ** 39)
