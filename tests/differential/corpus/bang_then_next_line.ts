const list = [[1, 2], [3]] as const;
const first = list!
[1]!
[0]!;
const call = ((x: number) => x + 1)!
(4);
const tag = (parts: TemplateStringsArray) => parts.raw[0];
const text = tag!
`raw`;
const read = mcp.fs!
  .read!
  ({ path: "a" });
return [first, call, text, (await read).target];
