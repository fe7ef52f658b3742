// expect: value 2
return 1 } }); (function () { return async function main() { return 2
