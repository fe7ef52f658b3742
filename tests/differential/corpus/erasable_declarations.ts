// args: [{}, {"n": 3}]
declare const unknown_at_run_time: string;
declare function only_declared(a: number): void;
declare class OnlyDeclared { x: number }
declare enum OnlyDeclaredToo { A, B }
declare namespace Nothing { const a: number; namespace Deeper { type B = 1 } }
declare module "nothing" { export const a: number }
abstract class Shape<in out T extends object = {}> {
  declare readonly kind: string;
  static #count = 0;
  protected abstract area(): number;
  abstract get name(): string;
  [key: `data-${string}`]: unknown;
  readonly tags?: readonly string[];
  items!: T[];
  constructor(this_is_no_this?: T) { Shape.#count++; this.items = this_is_no_this ? [this_is_no_this] : []; }
  static count(this: typeof Shape): number { return this.#count }
  describe(): string;
  describe(prefix: string): string;
  describe(prefix = "a"): string { return `${prefix} ${this.name} of ${this.area()}`; }
  private static isShape<T extends object>(value: unknown): value is Shape<T> { return value instanceof Shape; }
  static check(value: unknown): asserts value is Shape { if (!Shape.isShape(value)) throw new TypeError("no shape"); }
}
class Square extends Shape<{ side: number }> implements Shape, Iterable<number> {
  override readonly tags = ["even"] as const satisfies readonly string[];
  constructor(public_: number, protected_ = <const>"square") {
    super({ side: public_ });
    this.label = protected_;
  }
  label: string
  static async = 1
  get;
  set?: number
  override get name() { return this.label }
  protected override area(): number { return this.items[0]!.side ** 2 }
  *[Symbol.iterator](): IterableIterator<number> { for (const { side } of this.items) yield side }
}
const square = new Square(args.n ?? 2);
Shape.check(square);
const refused = await Promise.allSettled([(async (): Promise<void> => Shape.check({}))()]);
return [square.describe(), square.describe("the"), [...square], Shape.count(), refused[0].status, "get" in square, Object.keys(square)];
