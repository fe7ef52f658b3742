// expect: limit memory|thrown
return new ArrayBuffer(2 ** 40).byteLength
