const a: number = 1;
if (a) {
  await mcp.c.r({ a });
}
type T = {
  x: 1;
};
return a as number;
