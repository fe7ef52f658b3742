const check = (value: {
  n: number;
}): {
  ok: boolean;
} => {
  if (value.n > 1) {
    throw new Error(`too large: ${value.n}`); // throws here
  }
  return { ok: true };
};
check({ n: 1 });
await mcp.a.b({});
return check({ n: 2 });
