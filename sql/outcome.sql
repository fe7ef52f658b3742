-- Outcomes of runs: validation and normalisation.

CREATE FUNCTION pml_internal.pml_check_outcome(outcome jsonb, depth integer DEFAULT 0) RETURNS void
  LANGUAGE plpgsql IMMUTABLE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  task jsonb;
  missed jsonb;
BEGIN
  PERFORM pml_internal.pml_check_object('The outcome', outcome,
    '{"success": "boolean", "result": "any value", "error": "object", "duration_ms": "number", "path": "list of strings",
      "decisions": "list", "tasks": "list", "missed_calls": "list", "logs": "list", "fqdn": "string", "version": "integer"}',
    '{success}');
  IF depth > 100 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'The outcome has runs inside runs, over 100 deep',
      HINT = 'Limit how deep capabilities call each other.';
  END IF;
  FOR missed IN SELECT * FROM jsonb_array_elements(coalesce(nullif(outcome -> 'missed_calls', 'null'), '[]')) LOOP
    PERFORM pml_internal.pml_check_object('A missed call', missed, '{"target": "string", "line": "integer"}', '{target}');
  END LOOP;
  FOR task IN SELECT * FROM jsonb_array_elements(coalesce(nullif(outcome -> 'tasks', 'null'), '[]')) LOOP
    PERFORM pml_internal.pml_check_object('A task', task,
      '{"node": "string", "kind": "string", "target": "string", "args": "any value", "result": "any value",
        "success": "boolean", "duration_ms": "number", "error": "any value", "run": "object", "awaited": "boolean",
        "line": "integer"}', '{kind,target,success}');
    IF task ->> 'kind' NOT IN ('tool', 'capability') THEN
      RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'The "kind" of a task must be tool or capability',
        HINT = 'tool: of an MCP server; capability: of PML.';
    END IF;
    IF jsonb_typeof(task -> 'run') = 'object' THEN
      PERFORM pml_internal.pml_check_outcome(task -> 'run', depth + 1);
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_outcome(jsonb, integer) IS 'An error that says what is wrong with the outcome of a run';

CREATE FUNCTION pml_internal.pml_outcome_parts(outcome text) RETURNS text[]
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_outcome_parts_wrapper';
COMMENT ON FUNCTION pml_internal.pml_outcome_parts(text) IS
  'Splits an outcome: first the outcome with each result and each call''s arguments replaced by its index in this array, then these verbatim';

-- PL/pgSQL: as a function in SQL, which isn't inlined where it is used, it took 33 us instead of 2.
CREATE FUNCTION pml_internal.pml_duration(milliseconds jsonb) RETURNS integer
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN CASE WHEN jsonb_typeof(milliseconds) = 'number'
              THEN least(greatest(round(milliseconds::numeric), 0), 2147483647)::integer ELSE 0 END;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_duration(jsonb) IS 'A duration as it is stored: whole milliseconds';

CREATE FUNCTION pml_internal.pml_error_text(error jsonb) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pg_catalog.left(CASE pg_catalog.jsonb_typeof(error)
    WHEN 'object' THEN coalesce(error ->> 'message', error::text) WHEN 'null' THEN NULL ELSE error #>> '{}' END, 2000);
COMMENT ON FUNCTION pml_internal.pml_error_text(jsonb) IS 'The text of an error, which is a string or an object with a message';
