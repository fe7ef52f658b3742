// An assertion in front of what would be a block or a declaration without it.
interface Point { x: number; y?: number }
const make = (x: number) => <Point>{ x };
const nested = () => <Point><unknown>{ x: 2, y: 3 };
const named = <() => string>function () { return "f" };
<Point>{ x: 4 };
return [make(1), nested(), named(), named.name, (() => <Point>
  { x: 5 })()];
