-- Finishes runs: writes traces and usage counts, and keeps code that worked as a capability. The trace of a run has its id, so
-- that a second report of the run changes nothing.

CREATE FUNCTION pml_internal.pml_plain_outcome(outcome text) RETURNS text[]
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_plain_outcome_wrapper';
COMMENT ON FUNCTION pml_internal.pml_plain_outcome(text) IS
  'Duration, path (with U+001F between the nodes), decisions and result of a run that succeeded and called nothing; NULL for any other outcome';

-- Without settings, so that it is inlined.
CREATE FUNCTION pml_internal.pml_run_answer(
    status text, mode text, name text, duration_ms integer, workflow_id uuid, dag jsonb, fqdn text, version jsonb, warning text)
  RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  RETURN pg_catalog.jsonb_build_object(
    'status', status, 'mode', mode, 'capabilityName', name, 'executionTimeMs', duration_ms, 'workflowId', workflow_id, 'dag', dag,
    '_meta', pg_catalog.jsonb_build_object('fqdn', fqdn, 'traceId', workflow_id, 'version', version))
    || CASE WHEN warning IS NULL THEN '{}'::jsonb ELSE pg_catalog.jsonb_build_object('warning', warning) END;
COMMENT ON FUNCTION pml_internal.pml_run_answer(text, text, text, integer, uuid, jsonb, text, jsonb, text) IS
  'The answer of pml_execute for a run, without its result';

-- Fast path: most runs are of capabilities that call nothing, and many end at the same time. Only pml_finish, for the
-- caller's own run, and pml_finish_many, for proxies, call it.
CREATE FUNCTION pml_internal.pml_record_plain(
    workflow_ids uuid[], orgs text[], projects text[], actors text[], intents text[], args text[], contexts jsonb[],
    dags jsonb[], outcomes text[])
  RETURNS TABLE (place bigint, answer jsonb, result text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  kept_until timestamptz := now() + current_setting('pml.result_ttl')::interval;
  result_slot smallint := pml_internal.pml_slot('task_results');
  usage_slot smallint := pml_internal.pml_slot('tool_usage');
BEGIN
  RETURN QUERY
    WITH plain AS MATERIALIZED (
      SELECT r.*, pml_internal.pml_duration(r.parts[1]::jsonb) AS duration_ms, seen.id AS fqdn
      FROM (SELECT g.*, pml_internal.pml_plain_outcome(g.outcome) AS parts
            FROM unnest(workflow_ids, orgs, projects, actors, intents, args, contexts, dags, outcomes) WITH ORDINALITY
                   AS g (workflow_id, org, project, actor, intent, args, context, dag, outcome, place)
            -- OFFSET 0: each outcome is read once.
            WHERE g.context ? 'fqdn' OFFSET 0) AS r
      LEFT JOIN LATERAL (
        SELECT c.id FROM pml.capability_records c
        WHERE c.id = r.context ->> 'fqdn'
          AND pml_internal.pml_visible_from(r.org, r.project, r.actor, c.org, c.project, c.visibility, c.created_by)) AS seen ON true
      WHERE r.parts IS NOT NULL),
    used_slots AS MATERIALIZED (
      SELECT array_agg(s.slot ORDER BY s.since) AS slots, array_agg(s.since ORDER BY s.since) AS since
      FROM pml.slots s WHERE s.table_name = 'execution_trace'),
    traced AS (
      INSERT INTO pml.execution_trace
        (id, capability_id, workflow_id, org, project, user_id, intent, initial_context, executed_path, decisions, success,
         duration_ms, slot)
      SELECT p.workflow_id, p.fqdn, p.workflow_id, p.org, p.project, p.actor, p.intent, p.args::jsonb,
             string_to_array(p.parts[2], chr(31)), p.parts[3]::jsonb, true, p.duration_ms,
             pml_internal.pml_slot_among(s.slots, s.since, pml_internal.pml_run_began(p.workflow_id))
      FROM plain p, used_slots s
      ON CONFLICT DO NOTHING
      RETURNING id),
    kept AS (
      INSERT INTO pml.task_results (workflow_id, task_id, org, project, actor, result, expires_at, slot)
      SELECT p.workflow_id, 'result', p.org, p.project, p.actor, p.parts[4]::json, kept_until, result_slot
      FROM plain p JOIN traced ON traced.id = p.workflow_id),
    used AS (
      INSERT INTO pml.tool_usage (org, project, actor, server_id, tool_id, capability_fqdn, success, duration_ms, slot)
      SELECT p.org, p.project, p.actor, 'pml-capabilities', p.context ->> 'called', p.fqdn, true, p.duration_ms, usage_slot
      FROM plain p JOIN traced ON traced.id = p.workflow_id)
    SELECT p.place, pml_internal.pml_run_answer(
             'success', 'call_by_name', p.context ->> 'name', p.duration_ms, p.workflow_id,
             coalesce(p.dag, '{}') || '{"tasks": []}', p.fqdn, p.context -> 'version', p.context ->> 'warning'), p.parts[4]
    FROM plain p;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_record_plain(uuid[], text[], text[], text[], text[], text[], jsonb[], jsonb[], text[]) IS
  'Records those of the runs that are calls of capabilities which succeeded and called nothing; the answers, by place, and the results';

CREATE FUNCTION pml_internal.pml_trace(
    state pml.workflow_state, outcome jsonb, results text[], ran_fqdn text, counted_as text) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  problem text := CASE WHEN NOT (outcome -> 'success')::boolean THEN pml_internal.pml_error_text(outcome -> 'error') END;
  expires timestamptz := now() + current_setting('pml.result_ttl')::interval;
  trace_slot smallint := pml_internal.pml_slot('execution_trace', pml_internal.pml_run_began(state.workflow_id));
  result_slot smallint := pml_internal.pml_slot('task_results');
  usage_slot smallint := pml_internal.pml_slot('tool_usage');
BEGIN
  WITH RECURSIVE runs (id, parent, run, args, place) AS (
    SELECT state.workflow_id, NULL::uuid, outcome, state.args, '{}'::integer[]
    UNION ALL
    SELECT md5(concat_ws(' ', r.id, t.number))::uuid, r.id, t.task -> 'run', results[(t.task ->> 'args')::integer]::jsonb, r.place || t.number::integer
    FROM runs r, jsonb_array_elements(coalesce(nullif(r.run -> 'tasks', 'null'), '[]')) WITH ORDINALITY AS t (task, number)
    WHERE jsonb_typeof(t.task -> 'run') = 'object'),
  tasks AS MATERIALIZED (
    SELECT r.id AS run_id, t.task, t.number, r.place || t.number::integer AS place,
           called.id AS fqdn
    FROM runs r
    CROSS JOIN jsonb_array_elements(coalesce(nullif(r.run -> 'tasks', 'null'), '[]')) WITH ORDINALITY AS t (task, number)
    -- Never link to what the caller can't see, whatever the outcome claims.
    LEFT JOIN pml.capability_records called
      ON t.task ->> 'kind' = 'capability' AND called.id = split_part(t.task ->> 'target', '@', 1)),
  traced AS (
    INSERT INTO pml.execution_trace
      (id, parent_trace_id, capability_id, workflow_id, org, project, user_id, intent, initial_context, executed_path,
       decisions, task_results, success, duration_ms, error_message, slot)
    SELECT r.id, r.parent, CASE WHEN r.parent IS NULL THEN ran_fqdn ELSE nested.id END, state.workflow_id, state.org,
           state.project, state.actor, state.intent, r.args,
           ARRAY(SELECT jsonb_array_elements_text(coalesce(nullif(r.run -> 'path', 'null'), '[]'))),
           coalesce(nullif(r.run -> 'decisions', 'null'), '[]'),
           (SELECT coalesce(json_agg((left(jsonb_strip_nulls(jsonb_build_object(
                     'taskId', CASE WHEN t.place = ARRAY[t.number::integer] THEN 't' || t.number END,
                     'node', t.task -> 'node', 'kind', t.task -> 'kind', 'target', t.task -> 'target',
                     'success', t.task -> 'success', 'durationMs', pml_internal.pml_duration(t.task -> 'duration_ms'),
                     'resultPreview', pml_internal.pml_preview(results[(t.task ->> 'result')::integer]),
                     'error', pml_internal.pml_error_text(t.task -> 'error')))::text, -1)
                     -- As text, which keeps the order of their keys.
                     || CASE WHEN octet_length(results[(t.task ->> 'args')::integer]) <= 4000
                             THEN ', "args": ' || results[(t.task ->> 'args')::integer] ELSE '' END || '}')::json ORDER BY t.number), '[]')
            FROM tasks t WHERE t.run_id = r.id),
           (r.run -> 'success')::boolean, pml_internal.pml_duration(r.run -> 'duration_ms'),
           CASE WHEN NOT (r.run -> 'success')::boolean THEN pml_internal.pml_error_text(r.run -> 'error') END, trace_slot
    FROM runs r
    LEFT JOIN pml.capability_records nested ON nested.id = split_part(r.run ->> 'fqdn', '@', 1)
    -- Whoever reports the run again changes nothing.
    ON CONFLICT DO NOTHING
    RETURNING id),
  is_new AS (SELECT FROM traced t WHERE t.id = state.workflow_id),
  kept AS (
    INSERT INTO pml.task_results (workflow_id, task_id, org, project, actor, result, expires_at, slot)
    SELECT state.workflow_id, r.task_id, state.org, state.project, state.actor, results[r.place]::json, expires, result_slot
    FROM is_new, (SELECT 't' || t.number AS task_id, (t.task ->> 'result')::integer AS place
                  FROM tasks t WHERE t.run_id = state.workflow_id
                  UNION ALL SELECT 'result', (outcome ->> 'result')::integer WHERE (outcome -> 'success')::boolean) AS r)
  INSERT INTO pml.tool_usage
    (org, project, actor, server_id, tool_id, capability_fqdn, success, duration_ms, error_message, slot)
  SELECT state.org, state.project, state.actor, u.server, u.tool, u.fqdn, u.success, u.duration, u.failed,
         usage_slot
  FROM (SELECT '{}'::integer[] AS place, 'pml-capabilities' AS server, counted_as AS tool, ran_fqdn AS fqdn,
               (outcome -> 'success')::boolean AS success, pml_internal.pml_duration(outcome -> 'duration_ms') AS duration,
               problem AS failed
        WHERE counted_as IS NOT NULL
        UNION ALL
        SELECT t.place,
               CASE WHEN t.task ->> 'kind' = 'tool' AND NOT pml_internal.pml_is_fqdn(t.task ->> 'target')
                    THEN split_part(t.task ->> 'target', ':', 1) ELSE 'pml-capabilities' END,
               pml_internal.pml_shown_name(t.task ->> 'target'), t.fqdn, (t.task -> 'success')::boolean,
               pml_internal.pml_duration(t.task -> 'duration_ms'), pml_internal.pml_error_text(t.task -> 'error')
        FROM tasks t) AS u, is_new
  ORDER BY u.place;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_trace(pml.workflow_state, jsonb, text[], text, text) IS
  'Writes the traces of a run and its nested runs, counts every call, and stores the results of its tasks';

CREATE FUNCTION pml_internal.pml_finish_run(state pml.workflow_state, report jsonb, results text[]) RETURNS jsonb
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  went_well boolean;
  ran record;
  kept_fqdn text;
  warning text;
  unawaited text;
  shown jsonb := jsonb '{}';
BEGIN
  PERFORM pml_internal.pml_check_outcome(report);
  went_well := (report -> 'success')::boolean;
  unawaited := pml_internal.pml_unawaited(report);

  IF state.mode = 'call_by_name' THEN
    kept_fqdn := state.learning_context ->> 'fqdn';
    warning := state.learning_context ->> 'warning';
  ELSIF went_well AND unawaited IS NOT NULL
    AND (jsonb_path_exists(report, '$.tasks[*] ? (@.awaited == false && @.success == false)')
         OR jsonb_path_exists(report, '$.missed_calls[*]')) THEN
    -- An unawaited call failed or was never made, so this isn't code that worked.
    warning := 'Not saved: await every call, and run it again';
  ELSIF went_well THEN
    state.learning_context := state.learning_context || jsonb_build_object('args', state.args);
    BEGIN
      kept_fqdn := pml_internal.pml_keep_run_code(state.learning_context, state.learning_context ->> 'name');
    EXCEPTION WHEN SQLSTATE 'PM003' OR SQLSTATE 'PM005' OR SQLSTATE 'PM006' OR SQLSTATE 'PM007' THEN
      warning := SQLERRM;
    END;
    IF warning IS NOT NULL AND state.learning_context ? 'name' THEN
      -- A concurrent run of the same code may have taken the name.
      kept_fqdn := (SELECT same.id
                    FROM pml_internal.pml_same_code(state.learning_context ->> 'hash', state.learning_context ->> 'name') AS same
                    WHERE same.display_name = state.learning_context ->> 'name');
      IF kept_fqdn IS NOT NULL THEN
        warning := NULL;
      ELSE
        BEGIN
          kept_fqdn := pml_internal.pml_keep_run_code(state.learning_context, NULL);
        EXCEPTION WHEN SQLSTATE 'PM003' OR SQLSTATE 'PM005' OR SQLSTATE 'PM006' OR SQLSTATE 'PM007' THEN
          warning := SQLERRM;
        END;
      END IF;
    END IF;
    warning := 'Not saved under its name: ' || warning;
  ELSE
    kept_fqdn := (SELECT same.id FROM pml_internal.pml_same_code(state.learning_context ->> 'hash', NULL) AS same);
  END IF;
  IF went_well AND state.mode = 'direct' AND jsonb_typeof(report -> 'tasks') = 'array' AND report -> 'tasks' <> '[]' THEN
    PERFORM pml_internal.pml_note_tools(kept_fqdn, report -> 'tasks');
  END IF;
  SELECT r.id, pml_internal.pml_name_here(r.org, r.project, r.display_name) AS name, r.version INTO ran
  FROM pml.capability_records r WHERE r.id = kept_fqdn;
  -- A statement of its own: expressions with a query in them aren't evaluated directly.
  IF NOT went_well THEN
    shown := jsonb_build_object('error', coalesce(
      pml_internal.pml_with_excerpt(nullif(report -> 'error', 'null'), coalesce(state.learning_context ->> 'code',
        (SELECT v.code_snippet FROM pml.capability_versions v
         WHERE v.capability_fqdn = kept_fqdn AND v.version = (state.learning_context -> 'version')::integer))),
      '{"kind": "unknown", "message": "The run failed and did not say why"}'));
  END IF;
  PERFORM pml_internal.pml_trace(state, report, results, ran.id,
    CASE WHEN state.mode = 'call_by_name' THEN state.learning_context ->> 'called' WHEN went_well THEN ran.name END);
  RETURN shown || pml_internal.pml_run_answer(
    CASE WHEN went_well THEN 'success' ELSE 'error' END, state.mode,
    CASE WHEN state.mode = 'call_by_name' THEN state.learning_context ->> 'name' WHEN went_well THEN ran.name END,
    pml_internal.pml_duration(report -> 'duration_ms'), state.workflow_id,
    coalesce(state.dag, '{}') || pml_internal.pml_shown_tasks(report -> 'tasks', results), ran.id,
    CASE WHEN state.mode = 'call_by_name' THEN state.learning_context -> 'version' ELSE to_jsonb(ran.version) END,
    nullif(concat_ws('. ', unawaited, warning), ''));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_finish_run(pml.workflow_state, jsonb, text[]) IS
  'Records a run of the current user, whose outcome was split by pml_outcome_parts; its answer, without the result';

CREATE FUNCTION pml_internal.pml_finish(workflow_id uuid, outcome json) RETURNS json
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  state pml.workflow_state;
  shown jsonb;
  result text;
  parts text[];
  told json;
BEGIN
  -- Idempotent: a second report of the same run waits here for the first and returns its answer.
  SELECT * INTO state FROM pml.workflow_state w WHERE w.workflow_id = pml_finish.workflow_id FOR UPDATE;
  IF (state.org, state.project, state.actor)
     IS DISTINCT FROM (pml_internal.pml_org(), pml_internal.pml_project(), pml_internal.pml_actor()) THEN
    PERFORM pml_internal.pml_workflow_not_found(pml_finish.workflow_id);
  END IF;
  IF state.answer IS NOT NULL THEN
    RETURN state.answer;
  END IF;
  SELECT r.answer, r.result INTO shown, result FROM pml_internal.pml_record_plain(
    ARRAY[state.workflow_id], ARRAY[state.org], ARRAY[state.project], ARRAY[state.actor], ARRAY[state.intent],
    ARRAY[state.args::text], ARRAY[state.learning_context], ARRAY[state.dag], ARRAY[outcome::text]) AS r;
  IF NOT FOUND THEN
    -- Results and arguments are stored and returned verbatim, never parsed here.
    parts := pml_internal.pml_outcome_parts(outcome::text);
    shown := pml_internal.pml_finish_run(state, parts[1]::jsonb, parts);
    result := parts[(parts[1]::jsonb ->> 'result')::integer];
  END IF;
  told := (CASE WHEN shown ->> 'status' = 'success'
    THEN '{"status": "success", "result": ' || coalesce(result, 'null') || ', ' || substr((shown - 'status')::text, 2)
    ELSE shown::text END)::json;
  UPDATE pml.workflow_state w
  SET answer = told, finished_at = clock_timestamp(),
      -- The answer contains them.
      args = NULL, learning_context = NULL, dag = NULL,
      -- Long enough for a retry after a lost answer.
      expires_at = CASE WHEN w.expires_at < now() + interval '5 minutes' THEN now() + interval '5 minutes' ELSE w.expires_at END
  WHERE w.workflow_id = pml_finish.workflow_id;
  PERFORM pml_internal.pml_forget_expired(20);
  -- Last, because it may lock the record of the called capability until this transaction ends.
  PERFORM pml_internal.pml_fold_own_usage(shown #>> '{_meta,fqdn}');
  RETURN told;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_finish(uuid, json) IS
  'Finishes a run: writes trace and counts, saves new code that succeeded, and returns the answer of pml_execute; idempotent';

-- A run that can't be recorded doesn't keep the others from it. What may pass (no space, a deadlock, a shutdown) fails the whole
-- statement, which the proxy then repeats.
CREATE FUNCTION pml_internal.pml_finish_many(
    workflow_ids uuid[], orgs text[], projects text[], actors text[], request_ids text[], intents text[], args text[],
    contexts jsonb[], outcomes text[])
  RETURNS TABLE (place bigint, answer jsonb, refusal jsonb)
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  is_done boolean[];
  state pml.workflow_state;
  parts text[];
  code text;
  message text;
  detail text;
  hint text;
BEGIN
  IF NOT coalesce('[1:' || cardinality(workflow_ids) || ']' = ALL (ARRAY[
       array_dims(workflow_ids), array_dims(orgs), array_dims(projects), array_dims(actors), array_dims(request_ids),
       array_dims(intents), array_dims(args), array_dims(contexts), array_dims(outcomes)]), false) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'Invalid lists: each must have one element for each run, and there must be a run',
      HINT = 'For each plan of pml_plan, give its outcome; docs/running.md has an example.';
  END IF;
  is_done := array_fill(false, ARRAY[cardinality(workflow_ids)]);
  BEGIN
    FOR place, answer IN
      SELECT r.place, r.answer FROM pml_internal.pml_record_plain(
        workflow_ids, orgs, projects, actors, intents, args, contexts, NULL, outcomes) AS r
    LOOP
      is_done[place] := true;
      RETURN NEXT;
    END LOOP;
  EXCEPTION WHEN data_exception THEN
    -- One of them has what Postgres can't store; below it is told which.
    NULL;
  END;
  FOR place IN SELECT generate_subscripts(workflow_ids, 1) LOOP
    CONTINUE WHEN is_done[place];
    answer := NULL;
    refusal := NULL;
    BEGIN
      PERFORM pml_internal.pml_act_as(orgs[place], projects[place], actors[place], request_ids[place]);
      state.workflow_id := workflow_ids[place];
      state.org := orgs[place];
      state.project := projects[place];
      state.actor := actors[place];
      state.intent := intents[place];
      state.args := args[place]::jsonb;
      state.learning_context := contexts[place];
      state.mode := CASE WHEN contexts[place] ? 'fqdn' THEN 'call_by_name' ELSE 'direct' END;
      parts := pml_internal.pml_outcome_parts(outcomes[place]);
      answer := pml_internal.pml_finish_run(state, parts[1]::jsonb, parts);
    EXCEPTION WHEN OTHERS THEN
      IF left(SQLSTATE, 2) IN ('25', '40', '53', '57', '58') THEN
        RAISE;
      END IF;
      GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
                              hint = PG_EXCEPTION_HINT;
      refusal := jsonb_build_object('code', code, 'message', message, 'detail', nullif(detail, ''), 'hint', nullif(hint, ''));
    END;
    RETURN NEXT;
  END LOOP;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_finish_many(uuid[], text[], text[], text[], text[], text[], text[], jsonb[], text[]) IS
  'Finishes runs of plans of pml_plan in one transaction: each gets its answer, without the result, or why it was refused; idempotent by workflow id (proxies only)';
