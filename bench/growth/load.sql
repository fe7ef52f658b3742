-- The rows of :count runs, spread evenly over five slots of each table, as after some months. Triggers are off: rows are written as
-- they would be.
SET session_replication_role = replica;
DELETE FROM pml.slots;
INSERT INTO pml.slots (table_name, slot, since)
SELECT ring.name, place, now() - ring.kept_for * ((5 - place) / 4.5)
FROM (VALUES ('execution_trace', interval '31 days'), ('tool_usage', interval '90 days'), ('task_results', interval '1 hour')) AS ring (name, kept_for),
     generate_series(0, 4) AS place;

CREATE FUNCTION pg_temp.moments(ring text, place integer, count bigint) RETURNS TABLE (n bigint, at timestamptz) LANGUAGE sql AS $$
  SELECT i, s.since + (s.until - s.since) * (i / count::double precision)
  FROM (SELECT p.slot, p.since, lead(p.since, 1, now()) OVER (ORDER BY p.since) AS until FROM pml.slots p WHERE p.table_name = ring) AS s,
       generate_series(1, count) AS i
  WHERE s.slot = place
$$;
CREATE TEMP TABLE called AS
SELECT row_number() OVER () - 1 AS n, r.id, r.display_name FROM pml.capability_records r WHERE r.display_name LIKE 'bench:%';

SELECT format($$
  INSERT INTO pml.execution_trace_%1$s
    (id, capability_id, workflow_id, org, project, user_id, initial_context, executed_path, success, duration_ms, executed_at, slot)
  SELECT run.id, c.id, run.id, 'local', 'default', 'user_' || run.n %% 50, '{"n": 1}', '{n1}', true, 3, run.at, %1$s
  FROM (SELECT m.*, bench_id(m.at) AS id FROM pg_temp.moments('execution_trace', %1$s, %2$s) AS m OFFSET 0) AS run
  JOIN called c ON c.n = run.n %% 100;
  INSERT INTO pml.task_results_%1$s (workflow_id, task_id, org, project, actor, result, created_at, expires_at, slot)
  SELECT bench_id(m.at), 'result', 'local', 'default', 'user_' || m.n %% 50, '[1, 2]', m.at, m.at + interval '10 minutes', %1$s
  FROM pg_temp.moments('task_results', %1$s, %2$s) AS m;
  INSERT INTO pml.tool_usage_%1$s (id, org, project, actor, server_id, tool_id, capability_fqdn, success, duration_ms, used_at, slot)
  SELECT nextval('pml.tool_usage_id_seq'), 'local', 'default', 'user_' || m.n %% 50, 'pml-capabilities', c.display_name, c.id, true, 3, m.at, %1$s
  FROM pg_temp.moments('tool_usage', %1$s, %2$s) AS m JOIN called c ON c.n = m.n %% 100$$, place, :count / 5)
FROM generate_series(0, 4) AS place \gexec
VACUUM ANALYZE;
CHECKPOINT;
