// expect: limit stack
const f = () => g(), g = () => f(); return f() + 1
