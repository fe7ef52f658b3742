-- :count capabilities in a project of their own, with descriptions and parameters as they usually are.
SET client_min_messages = error;
SET synchronous_commit = off;
SET pml.project = :'project';
SELECT count(pml_register(
  format('const rows = await mcp.db.query({ table: "orders_%s", since: args.since }); return rows.slice(0, args.limit)', i),
  name => 'orders_' || i % 50 || ':latest_' || i,
  description => 'The newest orders of shop ' || i || ', newest first, as they came in since a given day',
  parameters_schema => '{"type": "object", "required": ["since"], "properties": {
    "since": {"type": "string", "description": "Day to begin at, YYYY-MM-DD"},
    "limit": {"type": "integer", "minimum": 1, "default": 20}}}',
  visibility => 'project'))
FROM generate_series(1, :count) AS i;
