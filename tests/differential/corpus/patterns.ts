// args: [{}, {"list": [{"a": 1, "b": [2, 3]}, {"a": 4, "b": []}]}, {"fail": "text"}, {"fail": "object"}, {"fail": "pattern"}]
type Item = { a: number, b: number[] }
const seen: unknown[] = []
const { list = [], fail } = args as { list?: Item[], fail?: string }
let i = 0
const [first] = list
if (first) var { a: hoisted } = first
else seen.push("none")
for (const { a, b: [c = 9] } of list) seen.push(a, c)
for (const x of [list]) for (const { a } of x) if (a) for (const [k] of [[a]]) seen.push(k)
outer: for (const { a } of list) { for (const [v] of [[a]]) { if (v) continue outer } }
do for (const [q] of [[1]]) i += q
while (i < 3)
for (let { length } = list; length > 0; length--) seen.push(length)
const f = ({ a }: Item, [x, { y } = { y: 1 }]: any[] = []) => { const { b } = { b: [a] } as Item; return [b, x, y] }
if (first) seen.push(f(first))
switch (list.length) { case 2: const [, { a }] = list; seen.push(a) }
class C { static made = 0; static { const { length } = list; C.made = length } m() { const [z] = list; return z } }
seen.push(C.made, new C().m())
let p, q;
({ p } = { p: 1 });
[p, q] = [q, p]
try { throw (1, { code: 5 }) as any } catch ({ code }) { seen.push(code) }
const g = async () => { throw `t${i}` }
seen.push(await g().catch((e) => e))
if (fail === "text") try { throw fail } catch (e) { return [e, typeof e] }
if (fail === "object") try { throw { fail } } catch (e: any) { return e }
if (fail === "pattern") { const { none } = args.missing } // throws here
return [seen, i, hoisted, p, q, String(f).length > 0]
