interface Shape { area(): number }
abstract class Base<T> implements Shape {
  static count = 0;
  declare ghost: string;
  protected readonly items: T[] = [];
  optional?: number;
  definite!: string;
  [key: string]: any;
  abstract area(): number;
  add(this: Base<T>, item: T): this { this.items.push(item); Base.count++; return this; }
  get size(): number { return this.items.length; }
  set size(n: number) { this.items.length = n; }
  #secret: number = 4;
  private reveal(): number { return this.#secret; }
}
class Square extends Base<number> {
  override area(): number { return this.items.reduce((a, b) => a * b, 1) + this["reveal"](); }
}
const s = new Square().add(2).add(3);
s.size = 1;
return [s.area(), s.size, Base.count, "ghost" in s, "optional" in s];
