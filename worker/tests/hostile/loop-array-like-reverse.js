// expect: limit cpu_time
return Array.prototype.lastIndexOf.call({ length: 2 ** 53 - 1 }, 1)
