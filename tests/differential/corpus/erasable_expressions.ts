// args: [{"list": [3, 1, 2]}, {"list": []}]
type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
type Fn<A extends unknown[], R> = (...args: A) => R;
type Ctor = abstract new (...args: any[]) => object;
type Named = [first: string, second?: number, ...rest: boolean[]];
type Deep<T> = T extends readonly (infer U extends object)[] ? { -readonly [K in keyof U as `get${string & K}`]+?: () => U[K] } : never;
type Unique = typeof unique; const unique: unique symbol = Symbol("unique");
interface Box<T> extends Array<T> { new <U>(value: U): Box<U>; <V>(value: V): V; readonly [index: number]: T; get size(): number; set size(v) }
const list = (args as { list?: number[] }).list!, first = list[0]!
const sorted = [...list].sort((a: number, b: number): number => a - b) as const
;[1].forEach((x: number) => void x)
const identity = <T,>(value: T): T => value, pair = <A, const B = A>(a: A, b?: B): [A, B | undefined] => [a, b];
const wait = async <
  T
>(value: T): Promise<
  T
> => await value;
const chosen = list.length > 1 ? (x: number): number => x : (x: number): number => -x;
const compared = first < 2 && 3 > (1), shifted = (first as number) << 1 >> (0 as any);
const generic = identity<number>(1), made = new Map<string, Array<Array<number>>>([["a", [[1]]]]), later = identity<string>;
const optional = (args?.list as number[] | undefined)?.map<number>((x) => x! + 1)?.[0]!;
let definite!: number; definite = <number><unknown>first satisfies unknown as number;
for (const value of list as readonly number[]) (definite as number) += value as any;
let key: string | undefined; for (key in { a: 1 } as Record<string, number>) key satisfies string;
try { null!.x } catch (error: unknown) { key = (error as Error).constructor.name }
function overload(a: string): string
function overload(a: number): number
function overload(this: void, a: any, ...rest: any[]): any { return [a, rest.length] }
const object = { method<T>(this: object, value: T): T { return value }, async *items<T>(): AsyncGenerator<T> {}, get size(): number { return 1 }, ["a" as string]: 1 as Json };
label: for (;;) { if (first as any) break label; else break }
const assigned = ({ a: (definite as any), b: [key as any] } = { a: 5, b: ["k"] } as any);
return [sorted, pair("a"), await wait(1), chosen(4), compared, shifted, generic, made.get("a")!, later("b"), optional ?? null, definite, key,
  overload("a" as string as any), object.method<number>(2), object.size, typeof unique, Object.keys(assigned)] satisfies unknown[];
