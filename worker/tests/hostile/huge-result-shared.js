// expect: limit output|memory
let o = ['xxxxxxxx']; for (let i = 0; i < 60; i++) o = [o, o]; return o
