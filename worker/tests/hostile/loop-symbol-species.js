// expect: limit cpu_time
class A extends Array { static get [Symbol.species]() { for (;;); } } return new A(1, 2).map((x) => x)
