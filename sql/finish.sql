-- Finishes a run: writes its trace and usage counts, and keeps code that worked as a capability.

CREATE FUNCTION pml_internal.pml_trace(
    root_id uuid, state pml.workflow_state, outcome jsonb, results text[], ran_fqdn text, counted_as text) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  problem text := CASE WHEN NOT (outcome -> 'success')::boolean THEN pml_internal.pml_error_text(outcome -> 'error') END;
BEGIN
  IF coalesce(outcome -> 'tasks', '[]') IN ('[]', 'null') THEN
    -- Fast path: most runs of capabilities call nothing.
    INSERT INTO pml.execution_trace
      (id, capability_id, workflow_id, org, project, user_id, intent, initial_context, executed_path, decisions, success,
       duration_ms, error_message)
    VALUES
      (root_id, ran_fqdn, state.workflow_id, state.org, state.project, state.actor, state.intent, state.args,
       CASE WHEN outcome ? 'path' THEN ARRAY(SELECT jsonb_array_elements_text(nullif(outcome -> 'path', 'null'))) ELSE '{}' END,
       coalesce(nullif(outcome -> 'decisions', 'null'), '[]'), (outcome -> 'success')::boolean,
       pml_internal.pml_duration(outcome -> 'duration_ms'), problem);
    IF counted_as IS NOT NULL THEN
      INSERT INTO pml.tool_usage
        (org, project, actor, server_id, tool_id, capability_fqdn, success, duration_ms, error_message)
      VALUES (state.org, state.project, state.actor, 'pml-capabilities', counted_as, ran_fqdn,
              (outcome -> 'success')::boolean, pml_internal.pml_duration(outcome -> 'duration_ms'), problem);
    END IF;
    RETURN;
  END IF;

  WITH RECURSIVE runs (id, parent, run, args, place) AS (
    SELECT root_id, NULL::uuid, outcome, state.args, '{}'::integer[]
    UNION ALL
    SELECT gen_random_uuid(), r.id, t.task -> 'run', results[(t.task ->> 'args')::integer]::jsonb, r.place || t.number::integer
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
       decisions, task_results, success, duration_ms, error_message)
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
           CASE WHEN NOT (r.run -> 'success')::boolean THEN pml_internal.pml_error_text(r.run -> 'error') END
    FROM runs r
    LEFT JOIN pml.capability_records nested ON nested.id = split_part(r.run ->> 'fqdn', '@', 1)),
  kept AS (
    INSERT INTO pml.task_results (workflow_id, task_id, org, project, actor, result, expires_at)
    SELECT state.workflow_id, 't' || t.number, state.org, state.project, state.actor, results[(t.task ->> 'result')::integer]::json,
           now() + current_setting('pml.result_ttl')::interval
    FROM tasks t WHERE t.run_id = root_id)
  INSERT INTO pml.tool_usage
    (org, project, actor, server_id, tool_id, capability_fqdn, success, duration_ms, error_message)
  SELECT state.org, state.project, state.actor, u.server, u.tool, u.fqdn, u.success, u.duration, u.failed
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
        FROM tasks t) AS u
  ORDER BY u.place;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_trace(uuid, pml.workflow_state, jsonb, text[], text, text) IS
  'Writes the traces of a run and its nested runs, counts every call, and stores the results of its tasks';

CREATE FUNCTION pml_internal.pml_finish(workflow_id uuid, outcome json) RETURNS json
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  state pml.workflow_state;
  went_well boolean;
  run_id uuid := gen_random_uuid();
  ran record;
  kept_fqdn text;
  warning text;
  unawaited text;
  -- Results and arguments are stored and returned verbatim, never parsed here.
  results text[] := pml_internal.pml_outcome_parts(outcome::text);
  report jsonb := results[1]::jsonb;
  shown jsonb := jsonb '{}';
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
    shown := jsonb_build_object('status', 'error', 'error', coalesce(
      pml_internal.pml_with_excerpt(nullif(report -> 'error', 'null'), coalesce(state.learning_context ->> 'code',
        (SELECT v.code_snippet FROM pml.capability_versions v
         WHERE v.capability_fqdn = kept_fqdn AND v.version = (state.learning_context -> 'version')::integer))),
      '{"kind": "unknown", "message": "The run failed and did not say why"}'));
  END IF;
  shown := shown || jsonb_build_object(
      'mode', state.mode,
      'capabilityName', CASE WHEN state.mode = 'call_by_name' THEN state.learning_context ->> 'name' WHEN went_well THEN ran.name END,
      'executionTimeMs', pml_internal.pml_duration(report -> 'duration_ms'), 'workflowId', state.workflow_id,
      'dag', state.dag || pml_internal.pml_shown_tasks(report -> 'tasks', results),
      '_meta', jsonb_build_object('fqdn', ran.id, 'traceId', run_id,
        'version', CASE WHEN state.mode = 'call_by_name' THEN (state.learning_context -> 'version')::integer ELSE ran.version END))
    || CASE WHEN coalesce(warning, unawaited) IS NULL THEN '{}'
            ELSE jsonb_build_object('warning', concat_ws('. ', unawaited, warning)) END;
  told := (CASE WHEN went_well
    THEN '{"status": "success", "result": ' || coalesce(results[(report ->> 'result')::integer], 'null') || ', ' || substr(shown::text, 2)
    ELSE shown::text END)::json;
  UPDATE pml.workflow_state w
  SET answer = told, finished_at = clock_timestamp(),
      -- The answer contains them.
      args = NULL, learning_context = NULL, dag = NULL,
      -- Long enough for a retry after a lost answer.
      expires_at = CASE WHEN w.expires_at < now() + interval '5 minutes' THEN now() + interval '5 minutes' ELSE w.expires_at END
  WHERE w.workflow_id = pml_finish.workflow_id;
  PERFORM pml_internal.pml_forget_expired(20);
  -- Last, because it locks the record of the called capability until this transaction ends.
  PERFORM pml_internal.pml_trace(run_id, state, report, results, ran.id,
    CASE WHEN state.mode = 'call_by_name' THEN state.learning_context ->> 'called' WHEN went_well THEN ran.name END);
  RETURN told;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_finish(uuid, json) IS
  'Finishes a run: writes trace and counts, saves new code that succeeded, and returns the answer of pml_execute; idempotent';
