function pick(x: string): string;
function pick(x: number, y?: boolean): number;
function pick(this: void, x: any, y = false): any { return y ? -x : x }
function assertIs(x: unknown): asserts x is string { if (typeof x !== "string") throw new TypeError("no string") }
class P { m(x: 1): 1; m(x: 2): 2; m(x: any) { return x } private constructor(); constructor(public a?: number) {} static make() { return new (P as any)(4) as P } }
const v: unknown = (await mcp.over.load({ value: "s" })).value;
assertIs(v);
const tuple = [1, "a"] as const satisfies readonly [number, string];
const map = new Map<string, Array<Record<string, Set<number>>>>([["k", [{ a: new Set<number>([1]) }]]]);
let fn: <T extends { a?: number }, U = T>(x: T, ...rest: U[]) => x is any;
const obj = <const T,>(x: T) => x;
const as = 1, satisfies = 2;
let opt = (map.get("k")!)[0]!["a"]!.size;
return [pick("q"), pick(3, true), v, tuple, opt, P.make().a, new P().m(2), obj({ z: 1 }).z, as < satisfies, (as as number) + (<number>satisfies)];
