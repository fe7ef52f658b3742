-- Fetching the whole result of a task, in pages.

CREATE FUNCTION pml_internal.pml_pretty(value text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_pretty_wrapper';
COMMENT ON FUNCTION pml_internal.pml_pretty(text) IS 'Indented JSON with its keys in the original order';

CREATE FUNCTION pml_internal.pml_result_piece(workflow_id uuid, task_id text, start integer, size integer, format text)
  RETURNS jsonb
  LANGUAGE plpgsql STABLE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  begins integer := least(greatest(coalesce(start, 0), 0), 2147483646);
  -- A node's id stands for the last call at that node.
  task text := coalesce((
    SELECT t.task ->> 'taskId'
    FROM pml.execution_trace e, json_array_elements(e.task_results) WITH ORDINALITY AS t (task, place)
    WHERE e.id = pml_result_piece.workflow_id AND t.task ->> 'node' = pml_result_piece.task_id
    ORDER BY t.place DESC LIMIT 1), task_id);
  kept record;
  content text;
BEGIN
  PERFORM pml_internal.pml_check_choice('format', coalesce(format, ''), '{raw,pretty}');
  SELECT t.result, t.expires_at INTO kept
  FROM pml.task_results t
  WHERE t.workflow_id = pml_result_piece.workflow_id AND t.task_id = task
    AND t.org = pml_internal.pml_org() AND t.project = pml_internal.pml_project() AND t.actor = pml_internal.pml_actor();
  IF NOT FOUND THEN
    IF NOT EXISTS (SELECT FROM pml.workflow_state w WHERE w.workflow_id = pml_result_piece.workflow_id
                     AND w.org = pml_internal.pml_org() AND w.project = pml_internal.pml_project()
                     AND w.actor = pml_internal.pml_actor())
       AND NOT EXISTS (SELECT FROM pml.execution_trace e WHERE e.id = pml_result_piece.workflow_id
                         AND e.org = pml_internal.pml_org() AND e.project = pml_internal.pml_project()
                         AND e.user_id = pml_internal.pml_actor()
                         AND e.executed_at > now() - current_setting('pml.result_ttl')::interval) THEN
      PERFORM pml_internal.pml_workflow_not_found(workflow_id);
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'PM001',
      MESSAGE = format('Task not found: %s in workflow %s', pml_internal.pml_excerpt(coalesce(task_id, 'none given')), workflow_id),
      HINT = 'The answer of the run lists its nodes with their id and its tasks with their taskId; "result" is that of the whole run.';
  ELSIF kept.expires_at < now() THEN
    PERFORM pml_internal.pml_workflow_not_found(workflow_id);
  END IF;
  content := CASE format WHEN 'pretty' THEN pml_internal.pml_pretty(coalesce(kept.result, 'null')::text) ELSE coalesce(kept.result, 'null')::text END;
  RETURN jsonb_build_object(
    'result', substr(content, begins + 1, greatest(coalesce(size, length(content)), 0)),
    'total', length(content), 'offset', begins, 'format', format,
    'next_offset', CASE WHEN size > 0 AND begins + size::bigint < length(content) THEN begins + size::bigint END);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_result_piece(uuid, text, integer, integer, text) IS 'pml_task_result, with names that PL/pgSQL allows';

CREATE FUNCTION pml_internal.pml_task_result(
    workflow_id uuid, task_id text, "offset" integer DEFAULT 0, "limit" integer DEFAULT NULL, format text DEFAULT 'raw')
  RETURNS jsonb
  LANGUAGE sql STABLE
  RETURN pml_internal.pml_result_piece(workflow_id, task_id, "offset", "limit", format);
COMMENT ON FUNCTION pml_internal.pml_task_result(uuid, text, integer, integer, text) IS
  'A page of the result of a task, as text: {result, total, offset, next_offset, format}';
