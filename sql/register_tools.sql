-- The tools of a server: one, or the whole list as the server gives it.

CREATE FUNCTION pml_internal.pml_check_tool(definition json, "position" bigint) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  problem text := pml_internal.pml_json_problem(definition::text);
  tool jsonb := CASE WHEN problem IS NULL THEN definition::jsonb END;
BEGIN
  problem := coalesce(problem, CASE
    WHEN jsonb_typeof(tool) IS DISTINCT FROM 'object' THEN 'it is not an object'
    WHEN jsonb_typeof(tool -> 'name') IS DISTINCT FROM 'string'
      OR tool ->> 'name' !~ '^[^[:space:][:cntrl:]]{1,128}$' THEN 'its name must have 1 to 128 characters and no white space'
    WHEN jsonb_typeof(tool -> 'description') NOT IN ('string', 'null') THEN 'its description must be a string'
    WHEN jsonb_typeof(tool -> 'inputSchema') NOT IN ('object', 'null') THEN 'its inputSchema must be an object'
    WHEN jsonb_typeof(tool -> 'outputSchema') NOT IN ('object', 'null') THEN 'its outputSchema must be an object' END);
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('Invalid tool at position %s: %s', "position", problem),
      HINT = 'Give a list as in MCP''s tools/list: [{"name", "description", "inputSchema", "outputSchema"}].';
  END IF;
  RETURN true;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_tool(json, bigint) IS 'True, or an error that says what is wrong with a tool';

CREATE FUNCTION pml_internal.pml_register_tools(server text, tools json) RETURNS integer
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  here_org text := pml_internal.pml_org();
  here_project text := pml_internal.pml_project();
  this_server text := substr(pml_internal.pml_check_server_name(pml_register_tools.server), 5);
  given json;
  gone text[];
  changed integer;
BEGIN
  PERFORM pml_internal.pml_check_may_act(here_org, here_project);
  IF json_typeof(pml_register_tools.tools) IS DISTINCT FROM 'array' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'Invalid tools: expected a list', HINT = 'Give [{"name", "description", "inputSchema", "outputSchema"}].';
  END IF;
  -- Serialises proxies that have the same servers.
  PERFORM pml_internal.pml_lock_scope(here_org, here_project, 'tools');

  -- The first of tools with the same name wins.
  SELECT coalesce(json_agg(list.tool), '[]') INTO given
  FROM (SELECT DISTINCT ON (t.tool ->> 'name') t.tool
        FROM json_array_elements(pml_register_tools.tools) WITH ORDINALITY AS t (tool, "position")
        WHERE pml_internal.pml_check_tool(t.tool, t."position")
        ORDER BY t.tool ->> 'name', t."position") AS list;

  WITH removed AS (
    DELETE FROM pml.tool_schema t
    WHERE t.org = here_org AND t.project = here_project AND t.server_id = this_server
      AND NOT EXISTS (SELECT FROM json_array_elements(given) AS g (tool) WHERE g.tool ->> 'name' = t.name)
    RETURNING t.tool_id::text)
  SELECT coalesce(array_agg(r.tool_id), '{}') INTO gone FROM removed r;

  WITH wanted AS (
    SELECT this_server || ':' || (g.tool ->> 'name') AS tool_id, g.tool ->> 'name' AS tool_name,
           g.tool ->> 'description' AS description,
           coalesce(nullif((g.tool -> 'inputSchema')::jsonb, 'null'), '{"type": "object"}') AS input_schema,
           nullif((g.tool -> 'outputSchema')::jsonb, 'null') AS output_schema, g.tool AS definition
    FROM json_array_elements(given) AS g (tool)),
  news AS (
    SELECT w.* FROM wanted w
    LEFT JOIN pml.tool_schema t ON t.org = here_org AND t.project = here_project AND t.tool_id = w.tool_id
    WHERE t.definition::text IS DISTINCT FROM w.definition::text),
  written AS (
    INSERT INTO pml.tool_schema AS t
      (org, project, tool_id, server_id, name, description, input_schema, output_schema, definition)
    SELECT here_org, here_project, n.tool_id, this_server, n.tool_name, n.description, n.input_schema, n.output_schema,
           n.definition
    FROM news n ORDER BY n.tool_id
    ON CONFLICT (org, project, tool_id) DO UPDATE
      SET description = excluded.description, input_schema = excluded.input_schema,
          output_schema = excluded.output_schema, definition = excluded.definition, cached_at = now()
    RETURNING 1)
  SELECT count(*) INTO changed FROM written;
  RETURN changed + cardinality(gone);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_register_tools(text, json) IS
  'Makes this list the tools of the server in the current scope; returns how many were added, changed or removed';

CREATE FUNCTION pml_internal.pml_register_tool(
    server text, tool text, description text DEFAULT NULL, input_schema jsonb DEFAULT NULL,
    output_schema jsonb DEFAULT NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  here_org text := pml_internal.pml_org();
  here_project text := pml_internal.pml_project();
  server_id text := substr(pml_internal.pml_check_server_name(pml_register_tool.server), 5);
BEGIN
  PERFORM pml_internal.pml_check_may_act(here_org, here_project);
  IF coalesce(pml_register_tool.tool, '') !~ '^[^[:space:][:cntrl:]]{1,128}$' THEN
    RAISE EXCEPTION USING ERRCODE = 'PM004',
      MESSAGE = 'Invalid tool name', HINT = 'A tool''s name has 1 to 128 characters and no white space.';
  END IF;
  INSERT INTO pml.tool_schema AS t
    (org, project, tool_id, server_id, name, description, input_schema, output_schema)
  VALUES
    (here_org, here_project, server_id || ':' || pml_register_tool.tool, server_id, pml_register_tool.tool,
     pml_register_tool.description, coalesce(pml_register_tool.input_schema, '{"type": "object"}'),
     pml_register_tool.output_schema)
  ON CONFLICT (org, project, tool_id) DO UPDATE
    SET description = excluded.description, input_schema = excluded.input_schema,
        output_schema = excluded.output_schema, definition = NULL, cached_at = now();
  RETURN server_id || ':' || pml_register_tool.tool;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_register_tool(text, text, text, jsonb, jsonb) IS
  'Records what a tool of a server takes and gives; returns server:tool';
