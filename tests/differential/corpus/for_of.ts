// args: [{"paths": ["a", "missing", "b"]}]
const contents: Record<string, string> = {};
for (const path of args.paths as string[]) {
  const stat = await mcp.fs.stat({ path });
  if (!stat.exists) continue;
  contents[path] = (await mcp.fs.read({ path })).content;
}
return contents;
