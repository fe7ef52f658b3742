import type { Foo } from "foo";
const x: Foo = { a: 1 } as Foo;
return x;
