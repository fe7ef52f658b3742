const größe: string = "日本語 🎉";
const ключ = { "é": 1, größe };
const r = await mcp.u.x({ text: größe, n: ключ["é"] });
return [r.content, größe.length];
