-- Arguments held against a schema.

CREATE FUNCTION pml_internal.pml_checked_args(schema text, args text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_checked_args_wrapper';
COMMENT ON FUNCTION pml_internal.pml_checked_args(text, text) IS 'pml_check_args on text';

CREATE FUNCTION pml_internal.pml_check_args(schema jsonb, args jsonb) RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pml_internal.pml_checked_args(coalesce(schema, 'true')::text, coalesce(args, '{}')::text)::jsonb;
COMMENT ON FUNCTION pml_internal.pml_check_args(jsonb, jsonb) IS
  'The arguments with the schema''s defaults filled in, or an error that says which of them doesn''t fit and why';

CREATE FUNCTION pml_internal.pml_checked_schema(what text, schema text) RETURNS void
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_checked_schema_wrapper';
COMMENT ON FUNCTION pml_internal.pml_checked_schema(text, text) IS 'pml_check_schema on text';

CREATE FUNCTION pml_internal.pml_check_schema(what text, schema jsonb) RETURNS void
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pml_internal.pml_checked_schema(what, schema::text);
COMMENT ON FUNCTION pml_internal.pml_check_schema(text, jsonb) IS 'An error unless it is a JSON Schema that can be used';

CREATE FUNCTION pml_internal.pml_check_parameters(schema jsonb) RETURNS void
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pml_internal.pml_check_schema('parameters_schema', schema);
  IF jsonb_typeof(schema) <> 'object' OR schema ? 'type' AND NOT schema -> 'type' @> '"object"'
     OR NOT schema ? 'type' AND schema ?| '{enum,const}' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'Invalid parameters_schema: it must be the schema of an object',
      HINT = 'Arguments are given by name: {"type": "object", "properties": {…}, "required": […]}.';
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_parameters(jsonb) IS 'An error unless it is a JSON Schema that arguments can be held against';
