-- How capabilities, structures and runs are shown to agents: names as seen from the current scope, no FQDNs.

CREATE FUNCTION pml_internal.pml_name_here(org text, project text, name text) RETURNS text
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  RETURN CASE WHEN org = pml_internal.pml_org() AND project = pml_internal.pml_project() THEN name
              ELSE pml_internal.pml_scoped(org, project, name) END;
COMMENT ON FUNCTION pml_internal.pml_name_here(text, text, text) IS
  'What a capability is called from the current scope: its name, or org.project:name';

CREATE FUNCTION pml_internal.pml_names_here(fqdns text[]) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_agg(DISTINCT pml_internal.pml_name_here(r.org, r.project, r.display_name)), '[]')
  FROM pml.capability_records r WHERE r.id = ANY (pml_names_here.fqdns)
$$;
COMMENT ON FUNCTION pml_internal.pml_names_here(text[]) IS 'The names of these capabilities, as far as the current user sees them';

CREATE FUNCTION pml_internal.pml_is_fqdn(key text) RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN pg_catalog.split_part(key, '@', 1) ~ '^([A-Za-z_][A-Za-z0-9_-]*[.]){4}[0-9a-f]+$';
COMMENT ON FUNCTION pml_internal.pml_is_fqdn(text) IS 'Whether this has the form of an FQDN, with or without a version';

-- In PL/pgSQL, which caches the plan. A hidden name must not leak as part of its FQDN either.
CREATE FUNCTION pml_internal.pml_shown_name(key text) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT pml_internal.pml_is_fqdn(key) THEN
    RETURN key;
  END IF;
  RETURN coalesce(
    (SELECT CASE WHEN r.deleted_at IS NULL THEN pml_internal.pml_name_here(r.org, r.project, r.display_name)
                 ELSE 'deleted:' || r.display_name END
     FROM pml.capability_records r WHERE r.id = split_part(key, '@', 1)),
    'unknown:capability');
END
$$;
COMMENT ON FUNCTION pml_internal.pml_shown_name(text) IS
  'A call target (FQDN, FQDN@version or server:tool) as shown to agents: the name as seen from here, deleted:name, or unknown:capability';

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
COMMENT ON FUNCTION pml_internal.pml_object_schema(jsonb) IS 'The schema as MCP requires it: of type object';

CREATE FUNCTION pml_internal.pml_preview(value text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_preview_wrapper';
COMMENT ON FUNCTION pml_internal.pml_preview(text) IS 'The beginning of a result, which is JSON';

CREATE FUNCTION pml_internal.pml_shown_dag(structure jsonb) RETURNS jsonb
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF coalesce(structure -> 'nodes', '[]') = '[]' THEN
    RETURN '{"nodes": [], "edges": []}'::jsonb;
  END IF;
  RETURN jsonb_build_object('edges', structure -> 'edges', 'nodes', (
    SELECT jsonb_agg((n.node - ARRAY['arguments', 'capabilityId']) || CASE WHEN n.node ? 'capabilityId'
             THEN jsonb_build_object('capability', pml_internal.pml_shown_name(n.node ->> 'capabilityId'))
             ELSE '{}' END ORDER BY n.place)
    FROM jsonb_array_elements(structure -> 'nodes') WITH ORDINALITY AS n (node, place)));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_shown_dag(jsonb) IS
  'A structure as shown to agents: names instead of FQDNs, without arguments';

CREATE FUNCTION pml_internal.pml_shown_tasks(tasks jsonb, results text[]) RETURNS jsonb
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
             'name', pml_internal.pml_shown_name(t.task ->> 'target'),
             'success', t.task -> 'success', 'durationMs', pml_internal.pml_duration(t.task -> 'duration_ms'),
             'resultPreview', pml_internal.pml_preview(results[(t.task ->> 'result')::integer]),
             'error', pml_internal.pml_error_text(t.task -> 'error'))) ORDER BY t.number) FILTER (WHERE t.number <= 50))
           || CASE WHEN count(*) > 50 THEN jsonb_build_object('omittedTasks', count(*) - 50) ELSE '{}' END
    FROM jsonb_array_elements(tasks) WITH ORDINALITY AS t (task, number));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_shown_tasks(jsonb, text[]) IS 'The calls of a run as shown to agents: names and previews of results';

CREATE FUNCTION pml_internal.pml_unawaited(outcome jsonb) RETURNS text
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Fast path: there is nearly never one.
  IF NOT jsonb_path_exists(outcome, '$.tasks[*] ? (@.awaited == false || exists (@.run))') AND NOT outcome ? 'missed_calls' THEN
    RETURN NULL;
  END IF;
  RETURN (
    WITH RECURSIVE runs (run, inside, place) AS (
      SELECT outcome, NULL::text, '{}'::integer[]
      UNION ALL
      SELECT t.task -> 'run', pml_internal.pml_shown_name(t.task ->> 'target'), r.place || t.number::integer
      FROM runs r, jsonb_array_elements(coalesce(nullif(r.run -> 'tasks', 'null'), '[]')) WITH ORDINALITY AS t (task, number)
      WHERE jsonb_typeof(t.task -> 'run') = 'object'),
    left_alone AS (
      SELECT r.place || t.number::integer AS place, r.inside, t.task AS call, concat('was not awaited',
               CASE WHEN NOT (t.task -> 'success')::boolean
                    THEN ' and failed: ' || coalesce(pml_internal.pml_error_text(t.task -> 'error'), 'it did not say why') END) AS told
      FROM runs r, jsonb_array_elements(coalesce(nullif(r.run -> 'tasks', 'null'), '[]')) WITH ORDINALITY AS t (task, number)
      WHERE t.task -> 'awaited' = 'false'
      UNION ALL
      -- After the calls of the same run.
      SELECT r.place || ARRAY[NULL, m.number::integer], r.inside, m.call, 'was not called: its timer was due after the code had returned'
      FROM runs r, jsonb_array_elements(coalesce(nullif(r.run -> 'missed_calls', 'null'), '[]')) WITH ORDINALITY AS m (call, number))
    SELECT string_agg(concat('line ' || (l.call ->> 'line'), ' of `' || l.inside || '`',
                        CASE WHEN coalesce(l.call ->> 'line', l.inside) IS NOT NULL THEN ': ' END,
                        '`', pml_internal.pml_excerpt(pml_internal.pml_shown_name(l.call ->> 'target')), '` ', l.told), '; '
                      ORDER BY l.number) FILTER (WHERE l.number <= 10)
           || CASE WHEN count(*) > 10 THEN format('; and %s more', count(*) - 10) ELSE '' END
    FROM (SELECT call, inside, told, row_number() OVER (ORDER BY place) AS number FROM left_alone) AS l);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_unawaited(jsonb) IS
  'The calls of a run, and of the runs inside it, that the code did not await or that came too late; NULL if there are none';

CREATE FUNCTION pml_internal.pml_with_excerpt(error jsonb, code text) RETURNS jsonb
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  line integer := CASE WHEN jsonb_typeof(error -> 'line') = 'number' THEN least((error ->> 'line')::numeric, 2147483647)::integer END;
  excerpt text := CASE WHEN line > 0 AND code <> ''
    THEN btrim(split_part(pml_internal.pml_display_code(code), E'\n', line), E' \t\r') END;
BEGIN
  RETURN CASE WHEN excerpt <> '' THEN error || jsonb_build_object('excerpt', pml_internal.pml_excerpt(excerpt)) ELSE error END;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_with_excerpt(jsonb, text) IS 'The error of a run with an excerpt of the line that it names';
