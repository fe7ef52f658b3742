-- The base servers. Their timestamps are fixed, so that the rows are identical in every database.
INSERT INTO pml.capability_records
  (id, org, project, namespace, action, hash, code_hash, display_name, record_type, created_by, created_at,
   updated_by, updated_at, version_tag, visibility, routing, routing_explicit, code_url, description)
SELECT concat_ws('.', 'pml', 'std', 'mcp', base.name, left(base.hash, 4)), 'pml', 'std', 'mcp', base.name,
       left(base.hash, 4), base.hash, 'mcp:' || base.name, 'mcp-server', 'pml', '2026-01-01 00:00:00+00',
       'pml', '2026-01-01 00:00:00+00', 'v1.0.0', 'public', 'local', true, base.code_url, base.description
FROM (SELECT s.*, pml_internal.pml_text_hash('mcp:' || s.name || ' ' || s.code_url) AS hash
      FROM (VALUES
        ('filesystem', 'npm:@modelcontextprotocol/server-filesystem', 'Files and folders of the local machine'),
        ('shell', 'pypi:mcp-shell-server', 'Commands on the local machine'),
        ('sqlite', 'pypi:mcp-alchemy', 'SQLite databases on the local machine')) AS s (name, code_url, description)
     ) AS base;
