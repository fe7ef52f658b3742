// expect: value 1
setTimeout(() => { for (;;); }, 0); return 1
