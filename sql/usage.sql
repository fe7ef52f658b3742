-- Usage: every call is a row of tool_usage, from which the counts of capabilities follow.

-- Nobody waits for a row that others count in: what was counted is added to the records later (pml_fold_usage).
CREATE FUNCTION pml_internal.pml_usage_count() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'pml.tool_usage'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  INSERT INTO pml.capability_usage (capability_fqdn, uses, successes, latency_ms)
  SELECT u.capability_fqdn, count(*), count(*) FILTER (WHERE u.success), sum(u.duration_ms)
  FROM used_tools u
  -- Skips restored and imported rows, which were counted before.
  WHERE u.used_at = now() AND u.capability_fqdn IS NOT NULL
  GROUP BY u.capability_fqdn;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_usage_count() IS 'Trigger: counts the calls of capabilities';

CREATE FUNCTION pml_internal.pml_fold_usage(only_of text DEFAULT NULL) RETURNS bigint
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  folded bigint;
BEGIN
  WITH held AS MATERIALIZED (
    SELECT r.id FROM pml.capability_records r
    WHERE r.id IN (SELECT u.capability_fqdn FROM pml.capability_usage u
                   WHERE only_of IS NULL OR u.capability_fqdn = only_of)
    -- Those in use are left to the next time.
    FOR NO KEY UPDATE SKIP LOCKED),
  counted AS (
    DELETE FROM pml.capability_usage u USING held WHERE u.capability_fqdn = held.id RETURNING u.*),
  sums AS (
    SELECT c.capability_fqdn, sum(c.uses) AS uses, sum(c.successes) AS successes, sum(c.latency_ms) AS latency_ms
    FROM counted c GROUP BY c.capability_fqdn)
  UPDATE pml.capability_records r
  SET usage_count = r.usage_count + s.uses, success_count = r.success_count + s.successes,
      total_latency_ms = r.total_latency_ms + s.latency_ms
  FROM sums s WHERE r.id = s.capability_fqdn;
  GET DIAGNOSTICS folded = ROW_COUNT;
  RETURN folded;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_fold_usage(text) IS
  'Adds what was counted since the last time to the records of capabilities (of all, or of one); returns of how many';

CREATE FUNCTION pml_internal.pml_fold_own_usage(fqdn text) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Without a proxy, which folds every second, somebody has to. It locks the record until the transaction ends: nobody may do
  -- that to another scope. At other isolation levels a concurrent fold would be an error.
  IF starts_with(fqdn, concat(pml_internal.pml_org(), '.', pml_internal.pml_project(), '.'))
     AND current_setting('transaction_isolation') = 'read committed'
     AND (SELECT count(*) FROM (SELECT FROM pml.capability_usage u
                                WHERE u.capability_fqdn = pml_fold_own_usage.fqdn LIMIT 100) AS few) = 100 THEN
    PERFORM pml_internal.pml_fold_usage(fqdn);
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_fold_own_usage(text) IS 'Folds the counts of a capability of the current scope, if there are many';

CREATE FUNCTION pml_internal.pml_tools_used(report uuid, calls jsonb) RETURNS integer
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  here_org text := pml_internal.pml_org();
  here_project text := pml_internal.pml_project();
  here_actor text := pml_internal.pml_actor();
  usage_slot smallint := pml_internal.pml_slot('tool_usage');
  counted integer;
BEGIN
  PERFORM pml_internal.pml_check_may_act(here_org, here_project);
  IF report IS NULL OR jsonb_typeof(calls) IS DISTINCT FROM 'array' OR EXISTS (
       SELECT FROM jsonb_array_elements(calls) AS given (call)
       WHERE jsonb_typeof(given.call -> 'tool') IS DISTINCT FROM 'string' OR length(given.call ->> 'tool') NOT BETWEEN 1 AND 256
          OR jsonb_typeof(given.call -> 'success') IS DISTINCT FROM 'boolean') THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'Invalid report: it needs an id, and "tool" and "success" for each call',
      HINT = 'For example: SELECT pml_tools_used(gen_random_uuid(), ''[{"server": "filesystem", "tool": "read_file", "success": true}]'').';
  END IF;
  -- Idempotency key: a retry of the same report waits here for the first and adds nothing.
  INSERT INTO pml.workflow_state (workflow_id, org, project, actor, answer, finished_at)
  VALUES (report, here_org, here_project, here_actor, '{"status": "reported"}', now())
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;
  INSERT INTO pml.tool_usage (org, project, actor, server_id, tool_id, success, duration_ms, error_message, used_at, slot)
  SELECT here_org, here_project, here_actor, s.name, s.name || ':' || c.tool, c.success,
         pml_internal.pml_duration(c.duration_ms), pml_internal.pml_error_text(c.error),
         now() - pml_internal.pml_duration(c.ago_ms) * interval '1 millisecond', usage_slot
  FROM ROWS FROM (jsonb_to_recordset(calls)
         AS (server text, tool text, success boolean, duration_ms jsonb, error jsonb, ago_ms jsonb))
       WITH ORDINALITY AS c (server, tool, success, duration_ms, error, ago_ms, place)
  JOIN (SELECT g.server, substr(pml_internal.pml_check_server_name(g.server), 5) AS name
        FROM jsonb_to_recordset(calls) AS g (server text) GROUP BY g.server) AS s
    ON s.server = c.server
  ORDER BY c.place;
  GET DIAGNOSTICS counted = ROW_COUNT;
  PERFORM pml_internal.pml_forget_expired(20);
  RETURN counted;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_tools_used(uuid, jsonb) IS
  'Records calls of servers'' tools that no code made, in a batch; idempotent per report';

CREATE FUNCTION pml_internal.pml_tool_used(
    server text, tool text, success boolean, duration_ms integer, error text DEFAULT NULL) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pml_internal.pml_tools_used(gen_random_uuid(), jsonb_build_array(jsonb_build_object(
    'server', server, 'tool', tool, 'success', success, 'duration_ms', duration_ms, 'error', error)));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_tool_used(text, text, boolean, integer, text) IS
  'Records one call of a server''s tool that no code made';
