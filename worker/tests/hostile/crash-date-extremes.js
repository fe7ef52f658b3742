// expect: value true
return [8.64e15, -8.64e15, NaN, 1e300].every((t) => typeof String(new Date(t)) === 'string') && new Date(2 ** 60).getFullYear() !== 1
