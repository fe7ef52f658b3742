const list = [1, 2, 3]
const copy = list as number[]
;[4].forEach((n) => copy.push(n))
let n = copy.length as number
const t = n as number
return [copy, t]
