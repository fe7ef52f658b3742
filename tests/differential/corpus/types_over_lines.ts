const f = async <
  T extends {
    id: number;
  },
>(
  x: T,
): Promise<
  T
> => {
  return x;
};
const g = (
  a: number,
  b?: number,
): number =>
  a + (b ?? 1);
const v = [3, 4] as
  number[]
return [await f({ id: 1 }), g(2), v, <
  number
>5];
