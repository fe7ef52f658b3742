-- Some hundreds of records with something of everything that the extension stores; the base servers changed too.
SET client_min_messages = error;

-- Tools first: the code below is compiled with what they give.
SELECT pml_register_server('tavily', 'cloud', 'https://example.com', 'v1.0.0'), pml_register_server('disk', 'local');
SELECT pml_register_tools('fs', '[{"name": "read", "outputSchema": {"type": "object", "properties": {"json": {"type": "string"}}}},
                                  {"name": "write", "inputSchema": {"type": "object", "properties": {"path": {}}}}]');
SELECT pml_register_tools('json', '[{"name": "parse", "inputSchema": {"type": "object", "properties": {"json": {"type": "string"}}}}]');
SELECT pml_register_tools('disk', '[{"name": "usage"}]'), pml_register_tool('tavily', 'search', 'searches', '{"type": "object"}');

-- Names, tags, several versions of some, and code without a name.
SELECT pml_register('return ' || i, 'ns:cap_' || i, 'number ' || i, tags => ARRAY['t' || i % 3], version_tag => 'v1.0.0',
                    visibility => (ARRAY['private', 'project', 'org', 'public'])[i % 4 + 1])
FROM generate_series(1, 200) AS i;
SELECT pml_register('return ' || i) FROM generate_series(1000, 1020) AS i;
-- A fork is older in the table than its parent, which an update moves to the end.
SELECT pml_fork('ns:cap_' || i, 'forks:of_' || i) FROM generate_series(1, 60) AS i;
SELECT pml_fork('forks:of_' || i, 'forks:again_' || i) FROM generate_series(1, 20) AS i;
SELECT pml_update('ns:cap_' || i, 'return ' || i || ' + ' || n, 'v1.' || n || '.0', 'change ' || n)
FROM generate_series(1, 40) AS i, generate_series(1, 5) AS n;
SELECT pml_update('forks:of_7', 'return "seven"'), pml_rollback('ns:cap_9@v1.2.0');
-- Renamed once, several times, and back; a released alias; a name that became a tool's.
SELECT pml_rename('ns:cap_' || i, 'renamed:to_' || i) FROM generate_series(41, 70) AS i;
SELECT pml_rename('renamed:to_' || i, 'renamed:again_' || i) FROM generate_series(41, 50) AS i;
SELECT pml_rename('renamed:again_41', 'ns:cap_41'), pml_release_alias('ns:cap_42');
SELECT pml_register('return "clash"', 'ns:cap:80'), pml_rename('ns:cap_81', 'ns:eighty_one');
SELECT pml_register_tools('ns', '[{"name": "cap_80"}, {"name": "cap_81"}]');
-- Deleted; one of the names is free again and has another holder, who gave it up too.
SELECT pml_delete('ns:cap_' || i) FROM generate_series(90, 110) AS i;
SET pml.name_reservation = '0s';
SELECT pml_register('return "gone"', 'free:again'), pml_delete('free:again');
RESET pml.name_reservation;
SELECT pml_register('return "taken"', 'free:again'), pml_rename('free:again', 'free:now'), pml_release_alias('free:again');

-- Calls between capabilities, and of tools.
SELECT pml_register(format('const a = await mcp.ns.cap_%s(); const b = await mcp.fs.read(args); return [a, await mcp.json.parse({ json: b.json })]', i),
                    'calls:cap_' || i) FROM generate_series(120, 150) AS i;
SELECT pml_register(format('return mcp.calls.cap_%s()', i), 'calls:nested_' || i) FROM generate_series(120, 130) AS i;
SELECT pml_register('return mcp.disk.usage()', 'calls:disk'), pml_register('return mcp.tavily.search(args)', 'calls:cloud');
SELECT pml_register(source => '{"type": "tool", "toolId": "fs:read"}', name => 'calls:tool');
SELECT pml_register('return args.a', 'typed:one', parameters_schema => '{"type": "object", "properties": {"a": {"type": "number"}}}',
                    output_schema => '{"type": "number"}');
INSERT INTO pml.capability_dependencies (from_fqdn, to_fqdn, edge_type)
VALUES (pml_resolve('forks:of_5'), pml_resolve('ns:cap_5'), 'sequence');

-- Runs: one of new code, one that calls another, one that failed, one that goes on.
SELECT pml_finish((pml_begin('{"code": "return args.a + args.b", "name": "math:add", "args": {"a": 1, "b": 2}}') ->> 'workflow_id')::uuid,
                  '{"success": true, "result": 3, "duration_ms": 4}');
SELECT pml_finish((pml_begin(jsonb_build_object('capability', 'calls:nested_' || i)) ->> 'workflow_id')::uuid, jsonb_build_object(
    'success', true, 'result', i, 'duration_ms', 5, 'path', '["n1"]'::jsonb, 'tasks', jsonb_build_array(jsonb_build_object(
      'node', 'n1', 'kind', 'capability', 'target', pml_resolve('calls:cap_' || i), 'success', true, 'duration_ms', 3, 'result', i,
      'run', jsonb_build_object('fqdn', pml_resolve('calls:cap_' || i), 'success', true, 'duration_ms', 2, 'result', i))))::json)
FROM generate_series(120, 130) AS i;
SELECT pml_finish((pml_begin('{"capability": "ns:cap_5"}') ->> 'workflow_id')::uuid, '{"success": false, "error": {"message": "no"}, "duration_ms": 1}');
SELECT pml_begin('{"capability": "ns:cap_6"}');
SELECT pml_tool_used('fs', 'read', true, 7);

-- Slots have turned: those of calls so far are old, and the next one of traces and results hasn't begun.
SELECT pml_expire_some();
UPDATE pml.slots SET since = now() - interval '200 days';
INSERT INTO pml.slots (table_name, slot, since) VALUES ('tool_usage', 3, now() - interval '95 days'), ('tool_usage', 1, now() - interval '1 day'),
  ('execution_trace', 4, now() - interval '1 day'), ('execution_trace', 2, now() + interval '2 hours'),
  ('task_results', 5, now() - interval '5 minutes'), ('task_results', 1, now() + interval '2 hours');

-- Another scope, with uses of a public capability of the first one.
SET pml.org = 'acme';
SET pml.project = 'webapp';
SELECT pml_register('return ' || i, 'theirs:cap_' || i) FROM generate_series(1, 20) AS i;
SELECT pml_finish((pml_begin('{"capability": "local.default:ns:cap_7"}') ->> 'workflow_id')::uuid, '{"success": true, "result": 7, "duration_ms": 2}');
SET pml.actor = 'alice';
SELECT pml_register('return "alice"', 'alice:one');
RESET pml.actor;
SELECT pml_token_add(repeat('ab', 32), 'acme', 'webapp', 'alice', 'laptop'), pml_token_add(repeat('cd', 32), 'acme', 'webapp', 'bob');
SELECT pml_token_revoke(id) FROM pml.tokens WHERE actor = 'bob';
SELECT pml_grant('pg_monitor', 'acme', 'webapp');

-- The base servers: one has a new version, one another name; one's first name is free again, and what their owner adds.
SET pml.org = 'pml';
SET pml.project = 'std';
SELECT pml_register_server('sqlite', 'cloud', version_tag => 'v2.0.0');
SELECT pml_rename('mcp:shell', 'mcp:sh'), pml_rename('mcp:filesystem', 'mcp:files'), pml_release_alias('mcp:filesystem');
SET pml.actor = 'pml';
SELECT pml_register_server('clock', 'local'), pml_register('return "standard"', 'std:one', visibility => 'public');
RESET pml.actor;
RESET pml.org;
RESET pml.project;
SELECT pml_proxy_key() IS NOT NULL;
