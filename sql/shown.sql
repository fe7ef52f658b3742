-- What agents are shown of capabilities, structures and runs: names as seen from the current scope, no FQDNs.

CREATE FUNCTION pml_internal.pml_name_here(org text, project text, name text) RETURNS text
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  RETURN CASE WHEN org = pml_internal.pml_org() AND project = pml_internal.pml_project() THEN name
              ELSE org || '.' || project || ':' || name END;
COMMENT ON FUNCTION pml_internal.pml_name_here(text, text, text) IS
  'What a capability is called from the current scope: its name, or org.project:name';

CREATE FUNCTION pml_internal.pml_names_here(fqdns text[]) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_agg(DISTINCT pml_internal.pml_name_here(r.org, r.project, r.display_name)), '[]')
  FROM pml.capability_records r WHERE r.id = ANY (fqdns)
$$;
COMMENT ON FUNCTION pml_internal.pml_names_here(text[]) IS 'The names of those of the capabilities that the current user sees';

CREATE FUNCTION pml_internal.pml_shown_clash(org text, project text, name text) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN tool IS NULL THEN '{}' ELSE jsonb_build_object('clashes_with', tool) END
  FROM pml_internal.pml_tool_called(pml_shown_clash.org, pml_shown_clash.project, pml_shown_clash.name) AS tool
$$;
COMMENT ON FUNCTION pml_internal.pml_shown_clash(text, text, text) IS
  'The tool that came later under the name of this capability: {clashes_with}; an empty object if there is none';

CREATE FUNCTION pml_internal.pml_object_schema(schema jsonb) RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE
    WHEN schema ->> 'type' = 'object' THEN schema
    WHEN pg_catalog.jsonb_typeof(schema) = 'object' THEN schema || '{"type": "object"}'
    ELSE '{"type": "object"}'::jsonb END;
COMMENT ON FUNCTION pml_internal.pml_object_schema(jsonb) IS 'The schema as MCP wants it: always that of an object';

CREATE FUNCTION pml_internal.pml_preview(value jsonb) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pg_catalog.left(CASE pg_catalog.jsonb_typeof(value) WHEN 'string' THEN value #>> '{}' ELSE value::text END, 240);
COMMENT ON FUNCTION pml_internal.pml_preview(jsonb) IS 'The beginning of a result';

CREATE FUNCTION pml_internal.pml_shown_dag(structure jsonb) RETURNS jsonb
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF coalesce(structure -> 'nodes', '[]') = '[]' THEN
    RETURN '{"nodes": [], "edges": []}'::jsonb;
  END IF;
  RETURN jsonb_build_object('edges', structure -> 'edges', 'nodes', (
    SELECT jsonb_agg((n.node - ARRAY['arguments', 'capabilityId']) || CASE WHEN n.node ? 'capabilityId'
             THEN jsonb_build_object('capability', coalesce(pml_internal.pml_name_here(r.org, r.project, r.display_name), 'not found'))
             ELSE '{}' END ORDER BY n.place)
    FROM jsonb_array_elements(structure -> 'nodes') WITH ORDINALITY AS n (node, place)
    LEFT JOIN pml.capability_records r ON r.id = n.node ->> 'capabilityId'));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_shown_dag(jsonb) IS
  'A structure as agents see it: names in the place of FQDNs, and without the arguments';

CREATE FUNCTION pml_internal.pml_shown_tasks(tasks jsonb) RETURNS jsonb
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF coalesce(tasks, '[]') IN ('[]', 'null') THEN
    RETURN '{"tasks": []}'::jsonb;
  END IF;
  -- A loop may have called thousands.
  RETURN (
    SELECT jsonb_build_object('tasks', jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
             'taskId', 't' || t.number, 'node', t.task -> 'node', 'kind', t.task -> 'kind',
             'name', CASE WHEN t.task ->> 'kind' = 'tool' THEN t.task ->> 'target'
                          ELSE coalesce(pml_internal.pml_name_here(r.org, r.project, r.display_name), 'not found') END,
             'success', t.task -> 'success', 'durationMs', pml_internal.pml_duration(t.task -> 'duration_ms'),
             'resultPreview', pml_internal.pml_preview(t.task -> 'result'),
             'error', pml_internal.pml_error_text(t.task -> 'error'))) ORDER BY t.number) FILTER (WHERE t.number <= 50))
           || CASE WHEN count(*) > 50 THEN jsonb_build_object('omittedTasks', count(*) - 50) ELSE '{}' END
    FROM jsonb_array_elements(tasks) WITH ORDINALITY AS t (task, number)
    LEFT JOIN pml.capability_records r
      ON t.task ->> 'kind' = 'capability' AND r.id = split_part(t.task ->> 'target', '@', 1));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_shown_tasks(jsonb) IS 'The calls of a run as agents see them: names and the beginning of each result';
