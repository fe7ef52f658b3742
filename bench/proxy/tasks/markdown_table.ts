const records = JSON.parse((await mcp.filesystem.read_text_file({ path: args.path })).content);
const columns: string[] = args.columns;
const cell = (value: unknown) =>
  value === null || value === undefined ? "" : String(value).replace(/\|/g, "\\|").replace(/\n/g, " ");
const numeric = (column: string) => records.every((record: any) => typeof record[column] === "number");
const widths = columns.map((column) =>
  Math.max(3, column.length, ...records.map((record: any) => cell(record[column]).length)));
const row = (cells: string[]) =>
  `| ${cells.map((text, i) => (numeric(columns[i]) ? text.padStart(widths[i]) : text.padEnd(widths[i]))).join(" | ")} |`;
const rule = columns.map((column, i) =>
  numeric(column) ? "-".repeat(widths[i] - 1) + ":" : "-".repeat(widths[i]));
const lines = [row(columns), `| ${rule.join(" | ")} |`];
for (const record of records) lines.push(row(columns.map((column) => cell(record[column]))));
await mcp.filesystem.write_file({ path: args.out, content: lines.join("\n") + "\n" });
return { out: args.out, rows: records.length };
