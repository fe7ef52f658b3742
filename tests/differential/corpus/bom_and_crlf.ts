// args: [{"a":1}]
const a: number =
  args.a as
  number;
const b = `x
y`;
async function f<
  T
>(x: T): Promise<
  T
> {
  return x
}
/* c
 */ await mcp.crlf.call({ n: await f(a) });
throw new Error(b); // throws here
