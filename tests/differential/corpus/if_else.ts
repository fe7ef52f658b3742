// args: [{"path": "here"}, {"path": "missing"}]
const file = await mcp.fs.stat({ path: args.path });
if (file.exists) {
  return (await mcp.fs.read({ path: args.path })).content;
} else {
  await mcp.fs.create({ path: args.path });
  await mcp.fs.write({ path: args.path, content: "" });
}
