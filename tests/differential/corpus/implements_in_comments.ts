interface A { a(): number }
class One implements /* implements nothing */ A { a() { return 1 } }
class Two /* implements A */ implements A /* x */, Partial<A> { a() { return 2 } }
abstract /* class */ class Three { abstract b(): number; c() { return 3 } }
class Four extends Three implements A { b() { return 4 } a() { return this.b() + this.c() } }
const five = class Named<T> implements A { constructor(private readonly x: T) {} a() { return 5 } };
return [new One().a(), new Two().a(), new Four().a(), new five("x").a()];
