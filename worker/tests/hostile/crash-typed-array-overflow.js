// expect: thrown RangeError
return new Uint8Array(new ArrayBuffer(8), 1, 2 ** 53)
