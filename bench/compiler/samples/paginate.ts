// Reads all pages of a listing, keeps what changed since the last run and writes it as CSV.
interface Page<T> {
  items: T[];
  nextCursor?: string | null;
}
interface Order { id: string; customer: { name: string; email?: string }; total: number; updatedAt: string; tags?: string[] }
type Row = Record<"id" | "customer" | "total" | "tags", string>;

const pageSize: number = args.pageSize ?? 100;
const since = new Date(args.since as string);
const wanted = new Set<string>(args.tags ?? []);
const orders: Order[] = [];
let cursor: string | null | undefined = undefined;
let pages = 0;

do {
  const page: Page<Order> = await mcp.shop.listOrders({ cursor, limit: pageSize, status: args.status });
  orders.push(...page.items.filter((order) => new Date(order.updatedAt) > since));
  cursor = page.nextCursor;
  pages += 1;
  if (pages > args.maxPages) {
    throw new Error(`more than ${args.maxPages} pages`);
  }
} while (cursor);

function toRow(order: Order): Row {
  const { id, customer: { name, email = "unknown" }, total } = order;
  return { id, customer: `${name} <${email}>`, total: total.toFixed(2), tags: (order.tags ?? []).join(" ") };
}

const rows = orders
  .filter((order) => wanted.size === 0 || order.tags?.some((tag) => wanted.has(tag)))
  .sort((a, b) => b.total - a.total)
  .map(toRow);

const byCustomer = new Map<string, number>();
for (const { customer, total } of orders) {
  byCustomer.set(customer.name, (byCustomer.get(customer.name) ?? 0) + total);
}

const header = ["id", "customer", "total", "tags"] as const;
const lines = rows.map((row) => header.map((field) => JSON.stringify(row[field])).join(","));
const csv = [header.join(","), ...lines].join("\n");
const file = await mcp.filesystem.write_file({ path: args.path, content: csv });
if (args.notify && rows.length > 0) {
  await mcp.mail.send({ to: args.notify, subject: `${rows.length} orders`, attachments: [file.path] });
}

const best = [...byCustomer].sort(([, a], [, b]) => b - a).slice(0, 5);
return { pages, count: rows.length, path: file.path, best: best.map(([name, total]) => ({ name, total })) };
