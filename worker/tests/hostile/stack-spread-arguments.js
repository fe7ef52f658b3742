// expect: limit stack|memory|thrown
return Math.max(...new Array(5e6).fill(1))
