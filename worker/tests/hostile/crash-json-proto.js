// expect: value {"a":1}
return Object.assign({}, JSON.parse('{"__proto__": { "x": 1 }, "a": 1}'))
