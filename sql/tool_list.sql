-- The tools of the current scope, as MCP clients see them.

CREATE FUNCTION pml_internal.pml_clash_note(org text, project text, name text) RETURNS text
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT format(' (Clashes with the tool %s: code that says this name gets the tool. Rename the capability with cap_rename.)', tool)
  FROM pml_internal.pml_tool_called(pml_clash_note.org, pml_clash_note.project, pml_clash_note.name) AS tool
  WHERE tool IS NOT NULL
$$;
COMMENT ON FUNCTION pml_internal.pml_clash_note(text, text, text) IS
  'The note in tools/list on a capability whose name clashes with a tool''s; NULL if it doesn''t';

CREATE TYPE pml_internal.pml_tool_row AS (
  tool_name text, kind text, name text, description text, input_schema jsonb, output_schema jsonb, server_id text, tool text,
  fqdn text, usage_count bigint, definition json);
COMMENT ON TYPE pml_internal.pml_tool_row IS 'A row of pml_tools';

-- Without settings, so that it is inlined.
CREATE FUNCTION pml_internal.pml_capability_tool(r pml.capability_records, server_names text[])
  RETURNS SETOF pml_internal.pml_tool_row
  LANGUAGE sql STABLE PARALLEL RESTRICTED ROWS 1
BEGIN ATOMIC
  SELECT n.tool_name, n.kind, (r).display_name, coalesce((r).description, 'Capability: ' || (r).display_name)
           -- Only where there is such a server: a lookup costs microseconds.
           || CASE WHEN pml_internal.pml_spelling(split_part((r).display_name, ':', 1)) = ANY (server_names)
                   THEN coalesce(pml_internal.pml_clash_note((r).org, (r).project, (r).display_name), '') ELSE '' END,
         pml_internal.pml_object_schema((r).parameters_schema),
         -- Clients validate results against it, so an inferred schema isn't listed.
         CASE WHEN (r).output_explicit AND (r).output_schema ->> 'type' = 'object' THEN (r).output_schema END,
         'pml-capabilities', NULL::text, (r).id, used.uses, NULL::json
  -- LIMIT forces an index lookup for each: before the first ANALYZE a join would compare all with all.
  FROM (SELECT t.tool_name, t.kind FROM pml.tool_names t
        WHERE t.org = (r).org AND t.project = (r).project AND t.kind = 'capability' AND t.name = (r).display_name LIMIT 1) AS n
  CROSS JOIN LATERAL pml_internal.pml_used((r).id, (r).usage_count, (r).success_count, (r).total_latency_ms) AS used;
END;
COMMENT ON FUNCTION pml_internal.pml_capability_tool(pml.capability_records, text[]) IS
  'A named capability as pml_tools lists it; nothing if it has no wire name';

CREATE FUNCTION pml_internal.pml_tools(servers text[] DEFAULT NULL, most bigint DEFAULT NULL)
  RETURNS TABLE (tool_name text, kind text, name text, description text, input_schema jsonb, output_schema jsonb,
                 server_id text, tool text, fqdn text, usage_count bigint, definition json)
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  WITH here AS MATERIALIZED (
    SELECT pml_internal.pml_org() AS org, pml_internal.pml_project() AS project,
           ARRAY(SELECT DISTINCT pml_internal.pml_spelling(t.server_id) FROM pml.tool_schema t
                 WHERE t.org = pml_internal.pml_org() AND t.project = pml_internal.pml_project()) AS server_names
    WHERE pml_internal.pml_check_may_act(pml_internal.pml_org(), pml_internal.pml_project()) IS NOT NULL)
  SELECT t.*
  FROM here
  JOIN pml.capability_records r ON r.org = here.org AND r.project = here.project
  CROSS JOIN LATERAL pml_internal.pml_capability_tool(r, here.server_names) AS t
  WHERE pml_tools.most IS NULL AND r.record_type = 'capability' AND r.deleted_at IS NULL
  UNION ALL
  SELECT t.*
  FROM here
  CROSS JOIN LATERAL pml_internal.pml_list(named_only => true, "limit" => pml_tools.most) AS first
  CROSS JOIN LATERAL (SELECT r FROM pml.capability_records r WHERE r.id = first.fqdn LIMIT 1) AS stored
  CROSS JOIN LATERAL pml_internal.pml_capability_tool(stored.r, here.server_names) AS t
  WHERE pml_tools.most IS NOT NULL
  UNION ALL
  SELECT t.tool_name, 'tool', t.tool_id, t.description, pml_internal.pml_object_schema(t.input_schema),
         t.output_schema, t.server_id, t.name, NULL, NULL, t.definition
  FROM here JOIN pml.tool_schema t ON t.org = here.org AND t.project = here.project
  WHERE pml_tools.servers IS NULL OR t.server_id = ANY (pml_tools.servers)
  ORDER BY 1
$$;
COMMENT ON FUNCTION pml_internal.pml_tools(text[], bigint) IS
  'The named capabilities of the current scope (most: only that many, the most used), and the tools of these servers (NULL: of all), by their wire names';

-- In PL/pgSQL, which caches the plan: every call by wire name uses it.
CREATE FUNCTION pml_internal.pml_tool(tool_name text) RETURNS TABLE (kind text, name text, server_id text, tool text)
  LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED ROWS 1
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT n.kind, n.name, t.server_id, t.name
    FROM pml.tool_names n
    LEFT JOIN pml.tool_schema t ON n.kind = 'tool' AND t.org = n.org AND t.project = n.project AND t.tool_id = n.name
    WHERE n.org = pml_internal.pml_org() AND n.project = pml_internal.pml_project() AND n.tool_name = pml_tool.tool_name;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_tool(text) IS
  'What a wire name stands for in the current scope: the name or alias of a capability, or a server''s tool';
