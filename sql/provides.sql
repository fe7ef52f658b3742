-- Provides edges: which tool's output can feed which tool's input. Computed from the schemas on request, not stored, because
-- their number grows with the square of the number of tools.

CREATE FUNCTION pml_internal.pml_structures_refresh(org text, project text, tools text[]) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  -- Locks in the order in which usage is counted, to avoid deadlocks.
  PERFORM FROM pml.capability_records r
  WHERE r.org = pml_structures_refresh.org AND r.project = pml_structures_refresh.project
    AND r.tools_used && tools AND r.deleted_at IS NULL ORDER BY r.id FOR NO KEY UPDATE;
  UPDATE pml.capability_records r SET structure = NULL
  WHERE r.org = pml_structures_refresh.org AND r.project = pml_structures_refresh.project
    AND r.tools_used && tools AND r.deleted_at IS NULL;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_structures_refresh(text, text, text[]) IS
  'Recomputes the structures of capabilities that use these tools';

CREATE FUNCTION pml_internal.pml_provides_keep() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'pml.tool_schema'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  IF TG_OP = 'UPDATE' THEN
    PERFORM pml_internal.pml_structures_refresh(c.org, c.project, array_agg(DISTINCT c.tool_id::text))
    FROM ((SELECT t.org, t.project, t.tool_id, t.input_schema, t.output_schema FROM changed_tools t
           EXCEPT SELECT t.org, t.project, t.tool_id, t.input_schema, t.output_schema FROM old_tools t)
          UNION
          (SELECT t.org, t.project, t.tool_id, t.input_schema, t.output_schema FROM old_tools t
           EXCEPT SELECT t.org, t.project, t.tool_id, t.input_schema, t.output_schema FROM changed_tools t)) AS c
    GROUP BY c.org, c.project;
  ELSE
    PERFORM pml_internal.pml_structures_refresh(c.org, c.project, array_agg(DISTINCT c.tool_id::text))
    FROM changed_tools c GROUP BY c.org, c.project;
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_provides_keep() IS
  'Trigger: keeps the provides edges in the structures of capabilities in step with the tools'' schemas';

CREATE FUNCTION pml_internal.pml_provides(tool text DEFAULT NULL, "limit" bigint DEFAULT 10000)
  RETURNS TABLE (from_tool text, to_tool text, coverage text, field_mapping jsonb,
                 provider_output_schema jsonb, consumer_input_schema jsonb)
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  WITH here AS MATERIALIZED (
    SELECT pml_internal.pml_org() AS org, pml_internal.pml_project() AS project)
  SELECT e.from_tool, e.to_tool, e.coverage, e.field_mapping,
         (SELECT t.output_schema FROM pml.tool_schema t
          WHERE t.org = here.org AND t.project = here.project AND t.tool_id = e.from_tool),
         (SELECT t.input_schema FROM pml.tool_schema t
          WHERE t.org = here.org AND t.project = here.project AND t.tool_id = e.to_tool)
  FROM here, pml_internal.pml_provides_between(
    (SELECT coalesce(jsonb_object_agg(t.tool_id, jsonb_build_object('input', t.input_schema, 'output', t.output_schema)),
                     '{}')::text
     FROM pml.tool_schema t WHERE t.org = here.org AND t.project = here.project), pml_provides.tool, pml_provides."limit") AS e
  ORDER BY e.from_tool, e.to_tool
$$;
COMMENT ON FUNCTION pml_internal.pml_provides(text, bigint) IS
  'The edges between tools of the current scope, from or to the given one (NULL: all), with both schemas';
