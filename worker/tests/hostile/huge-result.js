// expect: limit output|memory
return 'x'.repeat(3e6)
