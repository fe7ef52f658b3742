// args: [{"ids": [3, 1, 2]}, {"ids": []}]
const results = await Promise.all((args.ids as number[]).map(async (id) => {
  const { value } = await mcp.db.get({ value: id });
  return value * 2;
}));
return results.sort();
