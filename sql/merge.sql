-- Several capabilities as one.

CREATE FUNCTION pml_internal.pml_merge(sources text[], name text, code text DEFAULT NULL, description text DEFAULT NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  steps jsonb;
  named text;
  prelude text;
BEGIN
  IF coalesce(cardinality(pml_merge.sources), 0) < 2 OR array_position(pml_merge.sources, NULL) IS NOT NULL
     OR pml_merge.name IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
      MESSAGE = 'pml_merge needs at least two sources, and a name',
      HINT = 'For example: SELECT pml_merge(ARRAY[''fs:read_json'', ''data:validate''], ''fs:read_validated'').';
  END IF;
  SELECT jsonb_agg(jsonb_build_object(
           'name', concat_ws('@',
             CASE WHEN (r.org, r.project) = (pml_internal.pml_org(), pml_internal.pml_project()) THEN r.display_name
                  ELSE format('%s.%s:%s', r.org, r.project, r.display_name) END,
             nullif(split_part(given.spec, '@', 2), '')),
           'type', r.record_type, 'input', v.parameters_schema, 'output', v.output_schema) ORDER BY given.place),
         string_agg(r.display_name, ', ' ORDER BY given.place)
  INTO steps, named
  FROM unnest(pml_merge.sources) WITH ORDINALITY AS given (spec, place)
  CROSS JOIN LATERAL (SELECT pml_internal.pml_locate(given.spec) AS at) AS found
  JOIN pml.capability_records r ON r.id = found.at[1]
  JOIN pml.capability_versions v ON v.capability_fqdn = r.id AND v.version = found.at[2]::integer;
  IF steps @> '[{"type": "mcp-server"}]' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'A server can''t be part of a pipeline', HINT = 'Name capabilities.';
  END IF;

  IF pml_merge.code IS NULL THEN
    RETURN pml_internal.pml_register(pml_internal.pml_pipeline_code(steps), pml_merge.name,
             coalesce(pml_merge.description, 'Pipeline of ' || named));
  END IF;
  -- The code may call its sources as cap_<namespace>_<action>; they are declared on its first line, so that lines stay.
  SELECT string_agg(format('const %s = mcp[%s]; ', step.variable, to_json(step.name)), '') INTO prelude
  FROM (SELECT DISTINCT s ->> 'name' AS name,
               'cap_' || regexp_replace(split_part(s ->> 'name', '@', 1), '[^A-Za-z0-9_]', '_', 'g') AS variable
        FROM jsonb_array_elements(steps) AS s) AS step
  WHERE pml_merge.code ~ ('\m' || step.variable || '\M');
  RETURN pml_internal.pml_register(coalesce(prelude, '') || pml_merge.code, pml_merge.name,
           coalesce(pml_merge.description, 'Merge of ' || named));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_merge(text[], text, text, text) IS
  'Makes a capability that feeds each source with what the one before gives, or that runs the given code';
