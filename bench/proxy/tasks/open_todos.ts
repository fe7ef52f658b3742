const found = await mcp.filesystem.search_files({ path: args.folder, pattern: "**/*.ts" });
const paths = found.content.split("\n").filter((path: string) => path.endsWith(".ts"));
const todos: { file: string; line: number; kind: string; owner: string; text: string }[] = [];
for (const path of paths) {
  const { content } = await mcp.filesystem.read_text_file({ path });
  content.split("\n").forEach((line: string, index: number) => {
    const match = /\/\/\s*(TODO|FIXME|HACK)(?:\(([\w-]+)\))?:?\s*(.*)$/.exec(line);
    if (match) {
      todos.push({
        file: path.slice(args.folder.length + 1),
        line: index + 1,
        kind: match[1],
        owner: match[2] ?? "nobody",
        text: match[3].trim(),
      });
    }
  });
}
const byOwner: Record<string, number> = {};
for (const todo of todos) byOwner[todo.owner] = (byOwner[todo.owner] ?? 0) + 1;
todos.sort((a, b) => a.file.localeCompare(b.file) || a.line - b.line);
return { files: paths.length, byOwner, todos };
