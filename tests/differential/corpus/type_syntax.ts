// Every form of type syntax that has to go, each where it could leave something behind.
import type { Outer } from "outer";
import type Default from "outer";
import { type Inner, type Other as Renamed } from "inner";
export type Exported = Inner | Default;
export interface Visible { a: Renamed }
export type { Exported as Again };
declare namespace Ambient { const x: number; namespace Deep { type A = string } }
declare module "some-module" { export interface Options { a: string } }
declare global { interface Window { b: number } }
declare function external(a: string): void;
declare class Declared { method(): void; x: number }
declare let value: string, other: number;
declare enum DeclaredEnum { A }
const enum Small { One = 1, Two, Three = Two * 2 }
enum Text { A = "a", B = `b` }
abstract class Shape<in out T extends object = {}> {
  abstract area(): number;
  protected abstract readonly kind: string;
  abstract get size(): number;
  [key: string]: unknown;
  static [index: number]: string;
  name!: string;
  optional?: number;
  declare declared: string;
  constructor(public readonly id: number, protected label?: string) {}
  describe(this: Shape<T>, more?: string): string;
  describe(this: Shape<T>, more?: number): string;
  describe(this: Shape<T>, more?: unknown): string { return `${this.id} ${this.area()} ${more ?? "nothing"}` }
}
class Square extends Shape<{ side: number }> implements Iterable<number>, Outer {
  override readonly kind = "square" as const;
  constructor(private readonly side: number) { super(side, "s") }
  override area(): number { return this.side ** 2 }
  get size(): number { return this.side }
  set size(to: number) { void to }
  *[Symbol.iterator](): Generator<number, void, unknown> { yield this.side }
  static async create<const N extends number>(n: N): Promise<Square> { return new this(n) }
}
function isText(x: unknown): x is string { return typeof x === "string" }
function assertText(x: unknown): asserts x is string { if (!isText(x)) throw new TypeError("no text") }
function overloaded(a: string): string;
function overloaded(a: number, b?: number): number;
function overloaded(a: any, b = 1): any { return typeof a === "string" ? a : a + b }
function takesThis(this: { n: number }) { return this.n }
function onlyThis(this: void,) { return typeof this }
const identity = <T,>(x: T): T => x;
const twoTypes = async <A, B = A>(a: A, b?: B): Promise<[A, B | undefined]> => [a, b];
const typedArrow = (x: number): x is 1 => x === 1;
const object = { a: { b: [1, 2, 3] as const } } satisfies Record<string, unknown>;
const maybe = object as { a?: { b?: readonly number[]; f?: (n: number) => number } } | undefined;
const deep = maybe!.a!.b![1]! + (maybe?.a!.b?.[0]! ?? 0) + (<number>(<unknown>2)) + (maybe as any)?.["a"]!.b.length;
let definite!: number; definite = 4;
let tuple: [first: string, second?: number, ...rest: boolean[]] = ["a"];
type Mapped<T> = { readonly [K in keyof T as `get${Capitalize<string & K>}`]-?: () => T[K] };
type Conditional<T> = T extends (infer U extends string)[] ? U : never;
interface Callable { (x: number): string; new (x: string): Callable; readonly [Symbol.iterator]: unknown; method?<T>(): void }
const generic = new Map<string, Array<Array<number>>>([["k", [[1]]]]);
const instantiated = identity<string>;
const unique: unique symbol = Symbol("u") as any;
label: for (const x of [1, 2] as number[]) { if (x! > 1) break label }
let x = 5, a = 1; const compared = x < a, shifted = x >> a > (2 as number), cast = <any>x < 3;
try { assertText(1) } catch (error: unknown) { tuple.push((error as Error).message as any) }
const square = await Square.create(3);
for (const key in square as object) if (key === ("never" as string)) throw 0;
return [
  Small.Three, Text.A, Text["B"], square.describe("x" as any), square.describe(), [...square], Object.keys(square), overloaded("s"), overloaded(1),
  takesThis.call({ n: 1 }), onlyThis(), identity<number>(1), await twoTypes(1), typedArrow(1), deep, definite, tuple, generic.get("k")!, instantiated("i"),
  typeof unique, compared, shifted, cast, isText``, object.a.b satisfies readonly number[],
];
