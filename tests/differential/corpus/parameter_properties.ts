class Point {
  constructor(public readonly x: number, private y = 2, protected z?: number) {}
  sum(): number { return this.x + this.y + (this.z ?? 0); }
}
class Point3 extends Point {
  constructor(x: number, public w: number) {
    super(x, 3);
    this.w += 1;
  }
}
const p = new Point3(1, 10);
return [new Point(1).sum(), p.sum(), p.w, Object.keys(p)];
