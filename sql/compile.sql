-- The compiler: references, structure, parameters, output schema and executable of code. The C functions are pure; the
-- SQL around them looks names up in the caller's scope.

CREATE FUNCTION pml_internal.pml_code_names(code text) RETURNS text[]
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_code_names_wrapper';
COMMENT ON FUNCTION pml_internal.pml_code_names(text) IS
  'Every name that the code may use for a capability or tool, and every FQDN in it';

CREATE FUNCTION pml_internal.pml_link_with(code text, lookup text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_link_with_wrapper';
COMMENT ON FUNCTION pml_internal.pml_link_with(text, text) IS
  'The code with each name that the lookup (of pml_capabilities_named) has replaced by its FQDN';

CREATE FUNCTION pml_internal.pml_display_with(code text, names text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_display_with_wrapper';
COMMENT ON FUNCTION pml_internal.pml_display_with(text, text) IS
  'The code with each FQDN that names ({FQDN: name}) has replaced by its name';

-- Parallel unsafe, like its callers: it uses SPI, which increments the command counter once the transaction has an id.
CREATE FUNCTION pml_internal.pml_compile_in(org text, project text, code text) RETURNS jsonb
  LANGUAGE c STABLE STRICT PARALLEL UNSAFE COST 300 AS 'MODULE_PATHNAME', 'pml_compile_in_wrapper';
COMMENT ON FUNCTION pml_internal.pml_compile_in(text, text, text) IS
  'Compiles code in one parse, linking the names that are known in this scope (pml_names_known)';

CREATE FUNCTION pml_internal.pml_parses() RETURNS bigint
  LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'pml_parses_wrapper';
COMMENT ON FUNCTION pml_internal.pml_parses() IS 'How often this session has parsed code, for tests and benchmarks';

CREATE FUNCTION pml_internal.pml_infer_parameters(code text) RETURNS jsonb
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_infer_parameters_wrapper';
COMMENT ON FUNCTION pml_internal.pml_infer_parameters(text) IS 'The JSON Schema of args, from how the code uses it';

CREATE FUNCTION pml_internal.pml_lift_literals(code text) RETURNS jsonb
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_lift_literals_wrapper';
COMMENT ON FUNCTION pml_internal.pml_lift_literals(text) IS
  'The code with literals that look like secrets or settings turned into parameters, and which ones: {code, literals}';

CREATE FUNCTION pml_internal.pml_code_of_source(source text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_code_of_source_wrapper';
COMMENT ON FUNCTION pml_internal.pml_code_of_source(text) IS 'pml_source_code on text';

CREATE FUNCTION pml_internal.pml_source_code(source jsonb) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN pml_internal.pml_code_of_source(source::text);
COMMENT ON FUNCTION pml_internal.pml_source_code(jsonb) IS
  'The code of a source: as given, or generated from its DAG or tool';

CREATE FUNCTION pml_internal.pml_kept_source(source jsonb) RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN coalesce(source ->> 'type', 'code') = 'code' THEN '{"type": "code"}'::jsonb ELSE source END;
COMMENT ON FUNCTION pml_internal.pml_kept_source(jsonb) IS 'A source as it is stored: code itself is in code_snippet';

CREATE FUNCTION pml_internal.pml_pipeline(sources text) RETURNS jsonb
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_pipeline_wrapper';
COMMENT ON FUNCTION pml_internal.pml_pipeline(text) IS
  'Generates a pipeline of [{name, input, output}]: {code, parameters}; or an error if the schemas don''t fit';

CREATE FUNCTION pml_internal.pml_structure_with(structure text, schemas text) RETURNS jsonb
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_structure_with_wrapper';
COMMENT ON FUNCTION pml_internal.pml_structure_with(text, text) IS
  'A structure with its provides edges recomputed; NULL if it is nested too deep';

CREATE FUNCTION pml_internal.pml_provides_between(schemas text, tool text, at_most bigint)
  RETURNS TABLE (from_tool text, to_tool text, coverage text, field_mapping jsonb)
  LANGUAGE c IMMUTABLE PARALLEL SAFE COST 1000 ROWS 1000 AS 'MODULE_PATHNAME', 'pml_provides_between_wrapper';
COMMENT ON FUNCTION pml_internal.pml_provides_between(text, text, bigint) IS
  'Provides edges from and to a tool (NULL: all) between tools with these schemas, computed lazily';

CREATE FUNCTION pml_internal.pml_capability_spelled(org text, project text, written text) RETURNS jsonb
  LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  spelling text := pml_internal.pml_spelling(written);
  place text := pml_internal.pml_scoped(org, project, 'mcp__' || replace(spelling, ':', '__'));
  found text[];
BEGIN
  -- What is written in camelCase the compiler asks for in snake_case too. An FQDN has one spelling.
  IF written <> lower(written) OR strpos(written, '.') > 0 THEN
    RETURN NULL;
  END IF;
  IF strpos(spelling, ':') > 0 THEN
    found := ARRAY(SELECT DISTINCT n.fqdn FROM pml.tool_names n
                   WHERE pml_internal.pml_scoped(n.org, n.project, pml_internal.pml_spelling(n.tool_name)) = place
                     AND n.kind = 'capability'
                     AND (SELECT r.deleted_at IS NULL FROM pml.capability_records r WHERE r.id = n.fqdn));
  ELSE
    place := pml_internal.pml_scoped(org, project, spelling);
    found := ARRAY(SELECT DISTINCT n.fqdn FROM pml.tool_names n
                   WHERE pml_internal.pml_scoped(n.org, n.project, pml_internal.pml_spelling(n.name)) = place
                     AND n.kind = 'capability'
                     AND (SELECT r.deleted_at IS NULL FROM pml.capability_records r WHERE r.id = n.fqdn));
  END IF;
  IF cardinality(found) > 1 THEN
    RETURN pml_internal.pml_one_spelled(org, project, written, found);
  END IF;
  RETURN to_jsonb(found[1]);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_capability_spelled(text, text, text) IS
  'Looks a capability up by any spelling of its wire name, or of a name without namespace: its FQDN, or the names of several';

CREATE FUNCTION pml_internal.pml_one_spelled(org text, project text, written text, fqdns text[]) RETURNS jsonb
  LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- Just as the list of tools has it.
  listed text := (SELECT n.fqdn FROM pml.tool_names n
                  WHERE n.tool_name = 'mcp__' || replace(pml_one_spelled.written, ':', '__')
                    AND n.org = pml_one_spelled.org AND n.project = pml_one_spelled.project AND n.fqdn = ANY (fqdns));
BEGIN
  RETURN coalesce(to_jsonb(listed), (SELECT jsonb_agg(r.display_name ORDER BY r.display_name)
                                     FROM pml.capability_records r WHERE r.id = ANY (fqdns)));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_one_spelled(text, text, text, text[]) IS
  'Chooses between capabilities whose names differ in spelling only: the FQDN of the exact match, or all their names';

CREATE FUNCTION pml_internal.pml_refuse_spelling(written text, names text[]) RETURNS void
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_refuse_spelling_wrapper';
COMMENT ON FUNCTION pml_internal.pml_refuse_spelling(text, text[]) IS
  'The error for an ambiguous name in code';

-- In PL/pgSQL, which caches the plan: planning costs ten times the call. Each lookup is a subquery of its own, because a
-- join that was planned while the tables were empty would keep using sequential scans.
CREATE FUNCTION pml_internal.pml_capabilities_named(org text, project text, names text[]) RETURNS jsonb
  LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN (
    SELECT coalesce(jsonb_object_agg(found.written, found.fqdn), '{}')
    FROM (SELECT wanted.written, wanted.is_elsewhere, coalesce(
                   (SELECT to_jsonb(r.id) FROM pml.capability_records r
                    WHERE pml_internal.pml_scoped(r.org, r.project, r.display_name) = wanted.place
                      AND r.record_type = 'capability' AND r.deleted_at IS NULL),
                   (SELECT to_jsonb(r.id) FROM pml.capability_records r
                    WHERE r.id = (SELECT a.target_fqdn FROM pml.capability_aliases a
                                  WHERE pml_internal.pml_scoped(a.org, a.project, a.alias) = wanted.place)
                      AND r.record_type = 'capability' AND r.deleted_at IS NULL),
                   CASE WHEN NOT wanted.is_elsewhere THEN pml_internal.pml_capability_spelled(
                     pml_capabilities_named.org, pml_capabilities_named.project, wanted.written) END) AS fqdn
          FROM (SELECT name AS written, name ~ '^[^.:]+[.][^.:]+:' AS is_elsewhere,
                       CASE WHEN name ~ '^[^.:]+[.][^.:]+:' THEN name
                            ELSE pml_internal.pml_scoped(pml_capabilities_named.org, pml_capabilities_named.project, name)
                       END AS place
                -- OFFSET 0 computes the key first. Inlined into the comparison it wouldn't be leakproof, so that the policy
                -- would be evaluated first, for every row of all tenants.
                FROM unnest(names) AS name OFFSET 0) AS wanted OFFSET 0) AS found
    -- A tool wins over a capability of the same name, even if the capability was there first.
    WHERE CASE WHEN found.fqdn IS NULL THEN false WHEN found.is_elsewhere THEN true
               ELSE pml_internal.pml_tool_called(pml_capabilities_named.org, pml_capabilities_named.project, found.written) IS NULL END);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_capabilities_named(text, text, text[]) IS
  'Which of the names, as written in code saved in this scope, are capabilities that the current user sees: {name: FQDN}, or {name: [names]} if it could be any of several';

CREATE FUNCTION pml_internal.pml_schemas_of(org text, project text, viewer text, names text[]) RETURNS jsonb
  LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN (
    SELECT coalesce(jsonb_object_agg(known.name, known.schema), '{}')
    FROM (SELECT wanted.name, coalesce(
                   (SELECT jsonb_build_object('input', t.input_schema, 'output', t.output_schema)
                    FROM pml.tool_schema t
                    WHERE t.org = pml_schemas_of.org AND t.project = pml_schemas_of.project AND t.tool_id = wanted.name),
                   (SELECT jsonb_build_object('input', r.parameters_schema, 'output', r.output_schema)
                    FROM pml.capability_records r
                    WHERE r.id = wanted.name AND r.deleted_at IS NULL
                      AND pml_internal.pml_visible_from(pml_schemas_of.org, pml_schemas_of.project, viewer,
                                                        r.org, r.project, r.visibility, r.created_by))) AS schema
          FROM unnest(names) AS wanted (name)) AS known
    WHERE known.schema IS NOT NULL);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_schemas_of(text, text, text, text[]) IS
  'The schemas of tools (of this scope) and capabilities (by FQDN) that the viewer sees: {name: {input, output}}';

CREATE FUNCTION pml_internal.pml_source_parameters(source jsonb) RETURNS jsonb
  LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF source ->> 'type' <> 'tool' THEN
    RETURN NULL;
  END IF;
  RETURN (
  SELECT t.input_schema || jsonb_build_object(
           'properties', coalesce(t.input_schema -> 'properties', '{}') || coalesce(
             (SELECT jsonb_object_agg(given.name, coalesce(t.input_schema -> 'properties' -> given.name, '{}')
                                                  || jsonb_build_object('default', given.value))
              FROM jsonb_each(defaults.args) AS given (name, value)), '{}'),
           'required', coalesce(
             (SELECT jsonb_agg(needed) FROM jsonb_array_elements_text(t.input_schema -> 'required') AS needed
              WHERE NOT defaults.args ? needed), '[]'))
  FROM pml.tool_schema t,
       LATERAL (SELECT coalesce(nullif(pml_source_parameters.source -> 'defaultArgs', 'null'), '{}') AS args) AS defaults
  WHERE t.tool_id = pml_source_parameters.source ->> 'toolId'
    AND t.org = pml_internal.pml_org() AND t.project = pml_internal.pml_project());
END
$$;
COMMENT ON FUNCTION pml_internal.pml_source_parameters(jsonb) IS
  'The parameters of a capability made from a tool: its input schema with the default arguments; NULL for other sources';

CREATE FUNCTION pml_internal.pml_names_known(org text, project text, names text[]) RETURNS jsonb
  LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  lookup jsonb := pml_internal.pml_capabilities_named(org, project, names);
BEGIN
  RETURN jsonb_build_object('lookup', lookup, 'schemas', pml_internal.pml_schemas_of(org, project, pml_internal.pml_actor(),
    CASE WHEN lookup = '{}' THEN names
         ELSE names || ARRAY(SELECT found.fqdn #>> '{}' FROM jsonb_each(lookup) AS found (name, fqdn)
                            WHERE jsonb_typeof(found.fqdn) = 'string') END));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_names_known(text, text, text[]) IS
  'What the compiler needs to know of the names in code: {lookup, schemas}';

CREATE FUNCTION pml_internal.pml_compile(code text) RETURNS jsonb
  LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN pml_internal.pml_compile_in(pml_internal.pml_org(), pml_internal.pml_project(), code);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_compile(text) IS
  'Compiles code as saving it here would: {hash, linked, executable, structure, parameters, output, tools, capabilities, unresolved}';

CREATE FUNCTION pml_internal.pml_check_not_recursive(code text, name text) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- Fast path: calls begin with mcp or capabilities (or an escape in it), and what all spellings of the name have in common.
  -- Most code doesn't contain both and needs no parsing.
  action text := lower(translate(split_part(name, ':', 1 + (strpos(name, ':') > 0)::integer), '_-:', ''));
  written text[];
BEGIN
  IF name IS NULL OR strpos(code, 'mcp') + strpos(code, 'capabilities') + strpos(code, '\') = 0
     OR strpos(lower(translate(code, '_-:', '')), action) = 0 THEN
    RETURN;
  END IF;
  written := ARRAY(SELECT called FROM unnest(pml_internal.pml_code_names(code)) AS called
                   WHERE pml_internal.pml_spelling(called) = pml_internal.pml_spelling(name));
  -- The call is linked to another capability, whose name is the same (another error) or spelled differently.
  IF written = '{}' OR pml_internal.pml_capabilities_named(
       pml_internal.pml_org(), pml_internal.pml_project(), written) <> '{}' THEN
    RETURN;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'PM005',
    MESSAGE = format('Invalid code: line %s calls "%s", which is the name of this code itself', coalesce((
      SELECT min(l.number) FROM string_to_table(code, E'\n') WITH ORDINALITY AS l (line, number)
      WHERE strpos(lower(translate(l.line, '_-:', '')), action) > 0), 1), name),
    HINT = 'A capability can''t call itself. Use a loop, or a function inside the code; or give the code another name.';
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_not_recursive(text, text) IS
  'An error if the code calls the name under which it is to be saved';

CREATE FUNCTION pml_internal.pml_transform(code text) RETURNS text
  LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT pml_internal.pml_link_with(pml_transform.code, pml_internal.pml_capabilities_named(
           pml_internal.pml_org(), pml_internal.pml_project(), pml_internal.pml_code_names(pml_transform.code))::text)
$$;
COMMENT ON FUNCTION pml_internal.pml_transform(text) IS
  'The code with the names of capabilities in the current scope replaced by their FQDNs; all else keeps its bytes';

CREATE FUNCTION pml_internal.pml_display_code(code text) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  names jsonb;
BEGIN
  -- Fast path: an FQDN has four dots between words. Most code has none and needs no parsing.
  IF code !~ '[\w-]\.[\w-]+\.[\w-]+\.[\w-]+\.[0-9a-f]{4}' THEN
    RETURN code;
  END IF;
  SELECT jsonb_object_agg(called.key, coalesce(
           -- Where a tool has the same name, saving the shown code again would link to the tool.
           (SELECT pml_internal.pml_scoped(r.org, r.project, r.display_name) FROM pml.capability_records r
            WHERE r.id = called.key AND r.deleted_at IS NULL
              AND pml_internal.pml_tool_called(r.org, r.project, r.display_name) IS NOT NULL),
           pml_internal.pml_shown_name(called.key)))
  INTO names
  FROM unnest(pml_internal.pml_code_names(pml_display_code.code)) AS called (key)
  WHERE pml_internal.pml_is_fqdn(called.key);
  RETURN CASE WHEN names IS NULL THEN code ELSE pml_internal.pml_display_with(code, names::text) END;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_display_code(text) IS
  'The reverse of pml_transform: FQDNs become current names, or placeholders for capabilities that are deleted or hidden';

CREATE FUNCTION pml_internal.pml_analyze(code text) RETURNS jsonb
  LANGUAGE sql STABLE STRICT PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT (compiled -> 'structure') || jsonb_build_object(
           'tools', compiled -> 'tools', 'capabilities', compiled -> 'capabilities',
           'unresolved', compiled -> 'unresolved')
  FROM (SELECT pml_internal.pml_compile(pml_analyze.code) AS compiled) AS done
$$;
COMMENT ON FUNCTION pml_internal.pml_analyze(text) IS
  'Static analysis of code: {nodes, edges, tools, capabilities, unresolved}';

CREATE FUNCTION pml_internal.pml_check_code(code text) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF coalesce(code, '') !~ '\S' THEN
    RAISE EXCEPTION USING ERRCODE = 'PM005', MESSAGE = 'Invalid code: it is empty',
      HINT = 'Give the body of an async function, for example: return args.a + args.b';
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_code(text) IS 'An error if there is no code';
