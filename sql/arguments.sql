-- Checks of what callers pass in: against a JSON schema, the keys of an object, a list of choices.

CREATE FUNCTION pml_internal.pml_checked_args(schema text, args text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_checked_args_wrapper';
COMMENT ON FUNCTION pml_internal.pml_checked_args(text, text) IS 'pml_check_args on text';

CREATE FUNCTION pml_internal.pml_check_args(schema jsonb, args jsonb) RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pml_internal.pml_checked_args(coalesce(schema, 'true')::text, coalesce(args, '{}')::text)::jsonb;
COMMENT ON FUNCTION pml_internal.pml_check_args(jsonb, jsonb) IS
  'The arguments with the schema''s defaults filled in, or an error that says which of them doesn''t fit and why';

CREATE FUNCTION pml_internal.pml_validate_args(schema text, args text) RETURNS void
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_validate_args_wrapper';
COMMENT ON FUNCTION pml_internal.pml_validate_args(text, text) IS
  'An error unless the arguments fit the schema as they are, without its defaults';

CREATE FUNCTION pml_internal.pml_allowing_args(schema text, args text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_allowing_args_wrapper';
COMMENT ON FUNCTION pml_internal.pml_allowing_args(text, text) IS 'The schema, relaxed so that these arguments are valid';

CREATE FUNCTION pml_internal.pml_parameters_found(inferred jsonb) RETURNS jsonb
  LANGUAGE plpgsql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN CASE WHEN current_setting('pml.ran_with') = '' THEN inferred
              ELSE pml_internal.pml_allowing_args(inferred::text, current_setting('pml.ran_with'))::jsonb END;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_parameters_found(jsonb) IS
  'The inferred parameters, relaxed so that the arguments of the run that made the code (pml.ran_with) are valid';

CREATE FUNCTION pml_internal.pml_checked_schema(what text, schema text) RETURNS void
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_checked_schema_wrapper';
COMMENT ON FUNCTION pml_internal.pml_checked_schema(text, text) IS 'pml_check_schema on text';

CREATE FUNCTION pml_internal.pml_check_schema(what text, schema jsonb) RETURNS void
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pml_internal.pml_checked_schema(what, schema::text);
COMMENT ON FUNCTION pml_internal.pml_check_schema(text, jsonb) IS 'An error unless it is a valid JSON Schema';

CREATE FUNCTION pml_internal.pml_checked_parameters(schema text) RETURNS void
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_checked_parameters_wrapper';
COMMENT ON FUNCTION pml_internal.pml_checked_parameters(text) IS 'pml_check_parameters on text';

CREATE FUNCTION pml_internal.pml_check_parameters(schema jsonb) RETURNS void
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pml_internal.pml_checked_parameters(schema::text);
COMMENT ON FUNCTION pml_internal.pml_check_parameters(jsonb) IS 'An error unless it is a valid JSON Schema that objects can fit';

CREATE FUNCTION pml_internal.pml_snake_keys(arguments jsonb) RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_object_agg(lower(regexp_replace(a.key, '([a-z])([A-Z])', '\1_\2', 'g')), a.value), '{}')
  FROM jsonb_each(pml_snake_keys.arguments) AS a
$$;
COMMENT ON FUNCTION pml_internal.pml_snake_keys(jsonb) IS 'An object with its keys in snake_case';

CREATE FUNCTION pml_internal.pml_check_object(
    what text, given jsonb, allowed jsonb, required text[], unlisted jsonb DEFAULT '{}') RETURNS jsonb
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  problem text;
BEGIN
  IF jsonb_typeof(coalesce(given, '{}')) <> 'object' THEN
    problem := format('%s: expected an object, found a %s', what, replace(jsonb_typeof(given), 'array', 'list'));
  ELSE
    SELECT CASE WHEN wanted.type IS NULL THEN format('%s has no argument "%s"', what, pml_internal.pml_excerpt(g.key))
                ELSE format('"%s" must be %s', g.key, wanted.article || wanted.type) END
    INTO problem
    FROM jsonb_each(coalesce(given, '{}')) AS g
    LEFT JOIN LATERAL (
      SELECT known.type, CASE WHEN known.type ~ '^[aeiou]' THEN 'an ' ELSE 'a ' END AS article
      FROM (SELECT coalesce(allowed ->> g.key, unlisted ->> g.key) AS type) AS known) AS wanted ON true
    WHERE CASE wanted.type
            WHEN 'any value' THEN false
            WHEN 'integer' THEN NOT (jsonb_typeof(g.value) = 'number' AND g.value::text ~ '^-?\d{1,9}$')
            WHEN 'list' THEN jsonb_typeof(g.value) <> 'array'
            WHEN 'list of strings' THEN jsonb_typeof(g.value) <> 'array'
              OR jsonb_path_exists(g.value, 'strict $[*] ? (@.type() != "string")')
            ELSE jsonb_typeof(g.value) IS DISTINCT FROM wanted.type END
      AND NOT (wanted.type IS NOT NULL AND jsonb_typeof(g.value) = 'null')
    ORDER BY wanted.type IS NOT NULL, g.key
    LIMIT 1;
    IF problem IS NULL THEN
      SELECT format('%s needs "%s"', what, r) INTO problem
      FROM unnest(required) AS r WHERE coalesce(nullif(given -> r, 'null'), '""') = '""' LIMIT 1;
    END IF;
  END IF;
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = problem,
      HINT = format('It takes %s.', (SELECT string_agg(format('%s (%s)', a.key, a.value), ', ' ORDER BY a.key)
                                     FROM jsonb_each_text(allowed) AS a));
  END IF;
  IF NOT jsonb_path_exists(coalesce(given, '{}'), '$.* ? (@ == null)') THEN
    RETURN coalesce(given, '{}');
  END IF;
  RETURN (SELECT coalesce(jsonb_object_agg(g.key, g.value), '{}')
          FROM jsonb_each(given) AS g WHERE jsonb_typeof(g.value) <> 'null');
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_object(text, jsonb, jsonb, text[], jsonb) IS
  'The object without nulls, if its keys and their types are allowed (or unlisted) and none that is required is missing; else an error';

CREATE FUNCTION pml_internal.pml_json_problem(document text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_json_problem_wrapper';
COMMENT ON FUNCTION pml_internal.pml_json_problem(text) IS
  'Why JSON that the type json allows can''t be used: U+0000, half a surrogate pair, too deep, a number that is too large; else NULL';

CREATE FUNCTION pml_internal.pml_check_count(what text, given bigint) RETURNS bigint
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF given < 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('Invalid %s: %s', what, given), HINT = 'Use 0 or more.';
  END IF;
  RETURN given;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_count(text, bigint) IS 'The number, if it isn''t negative; else an error';

CREATE FUNCTION pml_internal.pml_check_choice(what text, given text, choices text[]) RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF given <> ALL (choices) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('Invalid %s: "%s"', what, pml_internal.pml_excerpt(given)),
      HINT = format('Use %s or %s.', array_to_string(trim_array(choices, 1), ', '), choices[cardinality(choices)]);
  END IF;
  RETURN given;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_choice(text, text, text[]) IS 'What was given, if it is NULL or one of the choices; else an error';

CREATE FUNCTION pml_internal.pml_check_visibility(visibility text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pml_internal.pml_check_choice('visibility', visibility, '{private,project,org,public}');
COMMENT ON FUNCTION pml_internal.pml_check_visibility(text) IS 'The visibility, if it is one; else an error';

CREATE FUNCTION pml_internal.pml_check_routing(routing text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pml_internal.pml_check_choice('routing', routing, '{local,cloud}');
COMMENT ON FUNCTION pml_internal.pml_check_routing(text) IS 'The routing, if it is one; else an error';

CREATE FUNCTION pml_internal.pml_check_record_type(record_type text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pml_internal.pml_check_choice('record_type', record_type, '{capability,mcp-server}');
COMMENT ON FUNCTION pml_internal.pml_check_record_type(text) IS 'The type of a record, if it is one; else an error';
