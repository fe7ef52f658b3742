const { content } = await mcp.filesystem.read_text_file({ path: args.path });
function parseLine(line: string): string[] {
  const fields: string[] = [];
  let field = "";
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    const char = line[i];
    if (quoted) {
      if (char === '"' && line[i + 1] === '"') {
        field += '"';
        i += 1;
      } else if (char === '"') {
        quoted = false;
      } else {
        field += char;
      }
    } else if (char === '"') {
      quoted = true;
    } else if (char === ",") {
      fields.push(field);
      field = "";
    } else {
      field += char;
    }
  }
  fields.push(field);
  return fields;
}
const [header, ...rows] = content.trim().split(/\r?\n/).map(parseLine);
const column = (name: string) => header.indexOf(name);
const [date, region, units, price] = ["date", "region", "units", "unit_price"].map(column);
const totals: Record<string, { orders: number; units: number; revenue: number }> = {};
for (const row of rows) {
  const month = Number(row[date].slice(5, 7));
  if (Math.ceil(month / 3) !== args.quarter) continue;
  const total = (totals[row[region]] ??= { orders: 0, units: 0, revenue: 0 });
  total.orders += 1;
  total.units += Number(row[units]);
  total.revenue = Math.round((total.revenue + Number(row[units]) * Number(row[price])) * 100) / 100;
}
return Object.entries(totals)
  .map(([name, total]) => ({ region: name, ...total }))
  .sort((a, b) => b.revenue - a.revenue);
