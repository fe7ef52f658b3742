// args: [{"user": {"name": "n", "tags": ["a", "b"]}, "limit": 3}]
const { user: { name, tags: [first, ...rest] }, limit = 10, missing = "d" }: { user: any; limit?: number; missing?: string } = args;
const { content: c } = await mcp.u.get({ name });
const [x, , y = 5] = [1, 2] as number[];
return { name, first, rest, limit, missing, c, x, y };
