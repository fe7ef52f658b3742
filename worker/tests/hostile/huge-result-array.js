// expect: limit output|memory
return new Array(1e6).fill(1e9)
