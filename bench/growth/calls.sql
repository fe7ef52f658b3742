-- What the measured statements call: 100 capabilities, and runs of them as a proxy reports them.
SET client_min_messages = error;
SELECT count(pml_register(format('return [args.n, %s]', i), 'bench:echo_' || i, visibility => 'project')) FROM generate_series(1, 100) AS i \g /dev/null
CREATE TABLE bench_contexts AS
SELECT array_agg(pml_plan(jsonb_build_object('capability', 'bench:echo_' || i)) -> 'context') AS contexts FROM generate_series(1, 64) AS i;

CREATE FUNCTION bench_id(at timestamptz) RETURNS uuid LANGUAGE sql VOLATILE
  RETURN (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 19))::uuid;
CREATE FUNCTION bench_plain() RETURNS json LANGUAGE sql IMMUTABLE
  RETURN '{"success": true, "result": [1, 2], "duration_ms": 3, "path": ["n1"], "decisions": [], "tasks": []}'::json;
CREATE FUNCTION bench_with_calls() RETURNS json LANGUAGE sql IMMUTABLE
  RETURN '{"success": true, "result": [1, 2], "duration_ms": 3, "path": ["n1"], "decisions": [], "tasks": [
    {"node": "n1", "kind": "tool", "target": "fs:read", "args": {"path": "a"}, "result": "text", "success": true, "duration_ms": 1},
    {"node": "n2", "kind": "tool", "target": "fs:read", "args": {"path": "b"}, "result": "text", "success": true, "duration_ms": 1},
    {"node": "n3", "kind": "tool", "target": "db:query", "args": {"table": "c"}, "result": [1], "success": true, "duration_ms": 1}]}'::json;
CREATE FUNCTION bench_request(n integer) RETURNS jsonb LANGUAGE sql IMMUTABLE
  RETURN jsonb_build_object('capability', 'bench:echo_' || n, 'args', '{"n": 1}'::jsonb);
CREATE FUNCTION bench_finish(runs integer) RETURNS TABLE (place bigint, answer jsonb) LANGUAGE sql VOLATILE AS $$
  SELECT f.place, f.answer FROM bench_contexts c, pml_finish_many(
    ARRAY(SELECT bench_id(clock_timestamp()) FROM generate_series(1, runs)), array_fill('local'::text, ARRAY[runs]),
    array_fill('default'::text, ARRAY[runs]), array_fill('bench'::text, ARRAY[runs]), array_fill('request'::text, ARRAY[runs]),
    array_fill(NULL::text, ARRAY[runs]), array_fill('{"n": 1}'::text, ARRAY[runs]), c.contexts[1:runs],
    array_fill(bench_plain()::text, ARRAY[runs])) AS f
$$;

-- Runs whose results are fetched: of any age, where there are such.
CREATE TABLE bench_runs (n serial PRIMARY KEY, id uuid);
INSERT INTO bench_runs (id) SELECT (pml_finish((pml_begin(bench_request(n)) ->> 'workflow_id')::uuid, bench_plain()) ->> 'workflowId')::uuid
FROM generate_series(1, 100) AS n;
CREATE FUNCTION bench_some_run() RETURNS uuid LANGUAGE sql VOLATILE
  AS 'SELECT id FROM bench_runs WHERE n = (SELECT 1 + floor(random() * 100)::integer)';
SELECT pml_expire_some() \g /dev/null
VACUUM ANALYZE;
