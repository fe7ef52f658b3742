// expect: limit stack|thrown
return eval(Array.from({ length: 5000 }, (_, i) => `l${i}:`).join('') + '0')
