-- Merging capabilities into a pipeline.

CREATE FUNCTION pml_internal.pml_merged_parameters(first jsonb, code text) RETURNS jsonb
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  inferred jsonb := pml_internal.pml_infer_parameters(code);
BEGIN
  -- Only code that passes args on unchanged needs the parameters of its first source.
  IF code !~ '\(\s*args\s*[,)]|\.\.\.\s*args\M(?!\s*[.[?])' THEN
    RETURN NULL;
  END IF;
  RETURN pml_internal.pml_object_schema(first) || jsonb_build_object(
    'properties', coalesce(inferred -> 'properties', '{}') || coalesce(first -> 'properties', '{}'),
    'required', (SELECT coalesce(jsonb_agg(DISTINCT name), '[]')
                 FROM jsonb_array_elements(coalesce(first -> 'required', '[]') || coalesce(inferred -> 'required', '[]')) AS name));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_merged_parameters(jsonb, text) IS
  'The parameters of code that passes args on to a source with these parameters; NULL if it doesn''t pass them on';

CREATE FUNCTION pml_internal.pml_merge(sources text[], name text, code text DEFAULT NULL, description text DEFAULT NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  steps jsonb;
  named text;
  prelude text;
  merged jsonb;
  new_code text;
BEGIN
  IF coalesce(cardinality(pml_merge.sources), 0) < 2 OR EXISTS (SELECT FROM unnest(pml_merge.sources) AS source WHERE source IS NULL)
     OR pml_merge.name IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
      MESSAGE = 'pml_merge needs at least two sources, and a name',
      HINT = 'For example: SELECT pml_merge(ARRAY[''fs:read_json'', ''data:validate''], ''fs:read_validated'').';
  END IF;
  SELECT jsonb_agg(jsonb_build_object(
           'name', concat_ws('@',
             pml_internal.pml_name_here(r.org, r.project, r.display_name),
             nullif(split_part(given.spec, '@', 2), '')),
           'type', r.record_type, 'input', v.parameters_schema, 'is_inferred', NOT v.parameters_explicit,
           'output', v.output_schema) ORDER BY given.place),
         string_agg(r.display_name, ', ' ORDER BY given.place)
  INTO steps, named
  FROM unnest(pml_merge.sources) WITH ORDINALITY AS given (spec, place)
  -- OFFSET 0: one call for each source.
  CROSS JOIN LATERAL (SELECT pml_internal.pml_locate(given.spec) AS at OFFSET 0) AS found
  JOIN pml.capability_records r ON r.id = (found.at).fqdn
  JOIN pml.capability_versions v ON v.capability_fqdn = r.id AND v.version = (found.at).version;
  IF steps @> '[{"type": "mcp-server"}]' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'A server can''t be part of a pipeline', HINT = 'Name capabilities.';
  END IF;

  IF pml_merge.code IS NULL THEN
    merged := pml_internal.pml_pipeline(steps::text);
    RETURN pml_internal.pml_register(merged ->> 'code', pml_merge.name,
             coalesce(pml_merge.description, 'Pipeline of ' || named), merged -> 'parameters');
  END IF;
  -- The code may call its sources as cap_<namespace>_<action>, or by a prefix of one. The declarations go to its first line,
  -- so that line numbers stay.
  SELECT string_agg(format('const %s = mcp[%s]; ', called.variable, to_json(called.name)), '') INTO prelude
  FROM (SELECT used.variable,
               coalesce(min(source.name) FILTER (WHERE source.variable = used.variable), min(source.name)) AS name,
               count(*) = 1 OR bool_or(source.variable = used.variable) AS is_one
        FROM (SELECT DISTINCT word[1] AS variable FROM regexp_matches(pml_merge.code, '\m(cap_\w+)', 'g') AS word) AS used
        JOIN (SELECT DISTINCT s ->> 'name' AS name,
                     'cap_' || regexp_replace(split_part(s ->> 'name', '@', 1), '[^A-Za-z0-9_]', '_', 'g') AS variable
              FROM jsonb_array_elements(steps) AS s) AS source
          ON source.variable = used.variable OR starts_with(source.variable, used.variable || '_')
        GROUP BY used.variable) AS called
  WHERE called.is_one;
  new_code := coalesce(prelude, '') || pml_merge.code;
  RETURN pml_internal.pml_register(new_code, pml_merge.name, coalesce(pml_merge.description, 'Merge of ' || named),
           pml_internal.pml_merged_parameters(steps #> '{0,input}', new_code));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_merge(text[], text, text, text) IS
  'Makes a pipeline capability in which each source gets the result of the one before, or one with the given code';
