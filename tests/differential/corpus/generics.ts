function identity<T>(x: T): T { return x; }
const pair = <A, B>(a: A, b: B): [A, B] => [a, b];
const boxed = async <T,>(value: T): Promise<{ value: T }> => ({ value });
const map = new Map<string, Array<number>>([["a", [1]]]);
const make = identity<string>;
return [identity<number>(1), pair<string, number>("a", 2), await boxed(3), [...map.entries()], make("x")];
