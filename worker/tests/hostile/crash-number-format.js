// expect: value true
return [1e21.toFixed(100), (1.5).toPrecision(100), (2 ** 1023).toString(36), (0.1).toString(2)].every((s) => s.length > 0)
