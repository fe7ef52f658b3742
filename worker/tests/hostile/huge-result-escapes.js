// expect: limit output|memory
return '\u0001'.repeat(1e6)
