// expect: value 1
console.log('\x00\x00\x00\x00\xff\xff\xff\xff', '\ud800', '\u0000'); return 1
