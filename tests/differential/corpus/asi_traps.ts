const a = 1
const b = a
;[1, 2].forEach((x) => { log(x) })
var seen: number[] = []
function log(x: number) { (seen ??= []).push(x) }
;(function () { log(3) })()
let c = a as number
;`x`.length
let d = b
++d
const r = () => {
  return
  1
}
type T = number
interface I { x: T }
declare const nothing: I
const e = { async: 1, get: 2, of: 3, type: 4, as: 5 }
const type = e.type, as = e.as
type
as
var async = 1
async
const next = await mcp.asi.call({ n: d })
return [r(), c, d, seen, next.value, e.async]
