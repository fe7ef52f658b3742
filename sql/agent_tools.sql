-- The tools that every agent has. This is the only place where their names, descriptions, schemas and effects stand: the
-- proxy lists what is here, and arguments are checked against the same schemas.

-- In the schemas <spec>, <tags> and <visibility> stand for what several tools take.
CREATE FUNCTION pml_internal.pml_agent_tools()
  RETURNS TABLE (name text, effect text, definition json)
  LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 10
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.name, t.effect, json_build_object(
           'name', t.name, 'title', t.title, 'description', t.description,
           'inputSchema', json_build_object(
             'type', 'object',
             'properties', replace(replace(replace(t.properties,
               '<spec>', '{"type": "string", "description": "Name of the capability, such as fs:read_json; with @v2, @v1.2.0 or @2025-12-22 for a version"}'),
               '<tags>', '{"type": "array", "items": {"type": "string"}}'),
               '<visibility>', '{"type": "string", "enum": ["private", "project", "org", "public"]}')::json,
             'required', t.required, 'additionalProperties', false),
           'annotations', json_strip_nulls(json_build_object(
             'title', t.title, 'readOnlyHint', t.effect = 'reads',
             'destructiveHint', CASE WHEN t.effect <> 'reads' THEN t.effect <> 'adds' END,
             'openWorldHint', t.effect = 'anything')))
  FROM (VALUES
    ('pml_execute', 'anything', 'Run code or a capability',
     'Run TypeScript in a sandbox, call a capability by name, or ask what there is for an intent.
- code: the body of an async function. Call tools with `await mcp.server.tool({...})` and capabilities with `await mcp.namespace.action({...})`; use `args` for parameters and `return` the result. Code that succeeds is kept as a capability; give `name` (such as fs:read_json) to call it by name next time.
- capability with args: runs what was kept. Cheaper than sending code again: look first.
- intent alone: runs nothing, suggests tools and capabilities with their schemas.
Results of single calls are previews; pml_get_task_result has the whole.',
     '{"intent": {"type": "string", "description": "What this is for, in a sentence"},
       "code": {"type": "string", "description": "TypeScript or JavaScript: the body of an async function"},
       "name": {"type": "string", "description": "Name under which to keep the code, namespace:action"},
       "source": {"type": "object", "description": "Instead of code: {\"type\": \"dag\", \"dagStructure\": {\"tasks\": [{\"id\", \"tool\", \"arguments\": {\"path\": {\"type\": \"literal\", \"value\": ...}}, \"dependsOn\"}]}}"},
       "capability": <spec>,
       "args": {"type": "object", "description": "Arguments, seen by the code as `args`"},
       "description": {"type": "string", "description": "What the code does, for those who look for it"},
       "options": {"type": "object", "additionalProperties": false, "properties": {
         "timeout": {"type": "integer", "minimum": 1, "maximum": 86400000, "description": "Milliseconds"}}}}',
     ARRAY[]::text[]),
    ('pml_discover', 'reads', 'Find tools and capabilities',
     'Find capabilities and tools for an intent, best first, with the schemas needed to call them. Use it before writing code: what you need may be there already.',
     '{"intent": {"type": "string", "description": "What you want to do, in words"},
       "type": {"type": "string", "enum": ["capability", "tool", "all"], "default": "all", "description": "Only this kind"},
       "min_score": {"type": "number", "minimum": 0, "maximum": 1, "description": "Leave out weaker matches"},
       "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 10},
       "offset": {"type": "integer", "minimum": 0, "default": 0}}',
     '{intent}'),
    ('pml_get_task_result', 'reads', 'Fetch a whole result',
     'Fetch the whole result of one call that pml_execute made, where its preview was cut. Results are kept for an hour. Long ones come in parts: go on at next_offset.',
     '{"workflow_id": {"type": "string", "description": "workflowId of the answer of pml_execute"},
       "task_id": {"type": "string", "description": "taskId of one of its tasks, or the id of a node in its dag, which stands for the last call there; \"result\" is what the run returned"},
       "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Character to begin at"},
       "limit": {"type": "integer", "minimum": 1, "description": "Characters at most"},
       "format": {"type": "string", "enum": ["raw", "pretty"], "default": "raw"}}',
     '{workflow_id,task_id}'),
    ('cap_lookup', 'reads', 'Look up a capability',
     'What a name means: the capability''s description, parameters, version and usage. Old names work.',
     '{"name": <spec>}', '{name}'),
    ('cap_list', 'reads', 'List capabilities',
     'List capabilities by name pattern, namespace or tag, with their usage.',
     '{"pattern": {"type": "string", "description": "Glob over names, such as fs:*"},
       "namespace": {"type": "string", "description": "Glob over namespaces"},
       "named_only": {"type": "boolean", "default": false},
       "unnamed_only": {"type": "boolean", "default": false},
       "created_by": {"type": "string", "description": "Glob over who made them"},
       "tags": <tags>,
       "visibility": <visibility>,
       "version_tag": {"type": "string", "description": "Glob over the tags of current versions, such as v1.*"},
       "record_type": {"type": "string", "enum": ["capability", "mcp-server"], "default": "capability"},
       "sort_by": {"type": "string", "enum": ["usage", "name", "created"], "default": "usage"},
       "limit": {"type": "integer", "minimum": 0, "maximum": 500, "default": 50},
       "offset": {"type": "integer", "minimum": 0, "default": 0}}',
     '{}'),
    ('cap_rename', 'changes', 'Rename or describe a capability',
     'Give a capability another name, description, tags or visibility; only what is given changes. The old name goes on working.',
     '{"name": <spec>,
       "new_name": {"type": "string", "description": "namespace:action"},
       "description": {"type": "string"},
       "tags": <tags>,
       "visibility": <visibility>}',
     '{name}'),
    ('cap_whois', 'reads', 'All about a capability',
     'Everything about a capability: code, parameters, aliases, dependencies, provenance, statistics.',
     '{"name": <spec>}', '{name}'),
    ('cap_history', 'reads', 'Versions of a capability',
     'All versions of a capability, newest first, with who changed what and the diffs.',
     '{"name": <spec>,
       "limit": {"type": "integer", "minimum": 0, "maximum": 500, "default": 50},
       "offset": {"type": "integer", "minimum": 0, "default": 0}}',
     '{name}'),
    ('cap_fork', 'adds', 'Copy a capability',
     'Copy a capability under a new name, to change the copy. The source may be in another scope that you can see: org.project:name.',
     '{"source": <spec>, "name": {"type": "string", "description": "Name of the copy"}}', '{source,name}'),
    ('cap_merge', 'adds', 'Make a pipeline of capabilities',
     'Make one capability of two or more: each gets what the one before it returns. Give code to combine them in another way. The sources stay as they are.',
     '{"sources": {"type": "array", "items": {"type": "string"}, "minItems": 2, "description": "Names of capabilities, in the order in which they run"},
       "name": {"type": "string", "description": "Name of the result, namespace:action"},
       "code": {"type": "string", "description": "Code that calls the sources as cap_<namespace>_<action>(args), in place of the pipeline"},
       "description": {"type": "string", "description": "What the result does"}}',
     '{sources,name}'))
    AS t (name, effect, title, description, properties, required)
$$;
COMMENT ON FUNCTION pml_internal.pml_agent_tools() IS
  'The tools that every agent has, as MCP''s tools/list shows them; effect: reads, adds, changes, or anything (it runs code)';

CREATE FUNCTION pml_internal.pml_schema_keys(schema jsonb) RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_object_agg(p.key, CASE
           WHEN p.value ->> 'type' = 'array' AND p.value #>> '{items,type}' = 'string' THEN 'list of strings'
           WHEN p.value ->> 'type' = 'array' THEN 'list'
           ELSE coalesce(p.value ->> 'type', 'any value') END), '{}')
  FROM jsonb_each(pml_schema_keys.schema -> 'properties') AS p
$$;
COMMENT ON FUNCTION pml_internal.pml_schema_keys(jsonb) IS 'The keys that an object of this schema may have, as pml_check_object takes them';

CREATE FUNCTION pml_internal.pml_agent_tool_schema(tool text) RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT (t.definition -> 'inputSchema')::jsonb FROM pml_internal.pml_agent_tools() AS t WHERE t.name = pml_agent_tool_schema.tool
$$;
COMMENT ON FUNCTION pml_internal.pml_agent_tool_schema(text) IS 'The input schema of an agent tool; NULL if there is none of that name';

CREATE FUNCTION pml_internal.pml_check_bounds(given jsonb, properties jsonb) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  problem record;
BEGIN
  SELECT b.key, b.is_list, b.lowest, b.highest INTO problem
  FROM (SELECT g.key, g.value, jsonb_typeof(g.value) = 'array' AS is_list,
               (coalesce(p.schema -> 'minimum', p.schema -> 'minItems'))::numeric AS lowest,
               (p.schema -> 'maximum')::numeric AS highest
        FROM jsonb_each(given) AS g, LATERAL (SELECT properties -> g.key AS schema) AS p
        WHERE p.schema ?| '{minimum,maximum,minItems}') AS b
  WHERE CASE WHEN b.is_list THEN jsonb_array_length(b.value) < b.lowest
             ELSE (b.value)::numeric < b.lowest OR (b.value)::numeric > b.highest END
  ORDER BY b.key LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = CASE WHEN problem.is_list THEN format('"%s" must have at least %s items', problem.key, problem.lowest)
                     WHEN problem.highest IS NULL THEN format('"%s" must be at least %s', problem.key, problem.lowest)
                     ELSE format('"%s" must be from %s to %s', problem.key, problem.lowest, problem.highest) END,
      HINT = 'The tool''s input schema says what it takes.';
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_bounds(jsonb, jsonb) IS
  'An error if a number or a list isn''t within the bounds that its schema advertises';

CREATE FUNCTION pml_internal.pml_check_arguments(tool text, args jsonb) RETURNS jsonb
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  schema jsonb := pml_internal.pml_agent_tool_schema(tool);
  given jsonb := CASE WHEN jsonb_typeof(args) = 'object' THEN pml_internal.pml_snake_keys(args) ELSE args END;
BEGIN
  IF schema IS NULL THEN
    PERFORM pml_internal.pml_tool_not_found(tool, format('There are %s.',
              (SELECT string_agg(t.name, ', ') FROM pml_internal.pml_agent_tools() AS t)));
  END IF;
  IF tool = 'cap_whois' AND given ? 'fqdn' THEN
    given := jsonb_build_object('name', given -> 'fqdn') || (given - 'fqdn');
  END IF;
  given := pml_internal.pml_check_object(tool, given, pml_internal.pml_schema_keys(schema),
             ARRAY(SELECT jsonb_array_elements_text(schema -> 'required')));
  PERFORM pml_internal.pml_check_bounds(given, schema -> 'properties');
  RETURN given;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_arguments(text, jsonb) IS
  'The arguments of an agent tool, validated and in snake_case';

CREATE FUNCTION pml_internal.pml_ask(tool text, args jsonb DEFAULT NULL, servers text[] DEFAULT NULL) RETURNS jsonb
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  given jsonb;
  refusal text;
  message text;
  detail text;
  hint text;
BEGIN
  IF tool NOT IN ('pml_discover', 'pml_get_task_result') THEN
    BEGIN
      RETURN pml_internal.pml_cap(tool, args);
    EXCEPTION WHEN SQLSTATE 'PM001' OR SQLSTATE 'PM002' THEN
      GET STACKED DIAGNOSTICS refusal = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
                              hint = PG_EXCEPTION_HINT;
      PERFORM pml_internal.pml_refuse_spec(refusal, message, detail, hint);
    END;
  END IF;
  given := pml_internal.pml_check_arguments(tool, args);
  IF tool = 'pml_discover' THEN
    RETURN (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(to_jsonb(hit) - 'fqdn')), '[]')
            FROM pml_internal.pml_search(
              given ->> 'intent', given ->> 'type', servers,
              CASE WHEN given ? 'min_score' THEN least((given -> 'min_score')::numeric, 2)::real END,
              (given -> 'limit')::bigint, (given -> 'offset')::bigint) AS hit);
  END IF;
  IF NOT given ->> 'workflow_id' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('Invalid workflow_id: "%s"', pml_internal.pml_excerpt(given ->> 'workflow_id')),
      HINT = 'Give the workflowId of an answer of pml_execute.';
  END IF;
  RETURN pml_internal.pml_task_result((given ->> 'workflow_id')::uuid, given ->> 'task_id', (given -> 'offset')::integer,
           (given -> 'limit')::integer, coalesce(given ->> 'format', 'raw'));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_ask(text, jsonb, text[]) IS
  'Calls an agent tool that runs no code (all but pml_execute); servers: whose tools pml_discover finds (NULL: all)';
