-- Names and FQDNs: validation, parsing and spelling.

CREATE FUNCTION pml_internal.pml_fqdn(org text, project text, namespace text, action text, code text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_fqdn_wrapper';
COMMENT ON FUNCTION pml_internal.pml_fqdn(text, text, text, text, text) IS
  'The FQDN of this code under these names, with the shortest hash';

CREATE FUNCTION pml_internal.pml_parse_fqdn(
    fqdn text, OUT org text, OUT project text, OUT namespace text, OUT action text, OUT hash text)
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT p[1], p[2], p[3], p[4], p[5] FROM pml_internal.pml_fqdn_parts(pml_parse_fqdn.fqdn) AS p
$$;
COMMENT ON FUNCTION pml_internal.pml_parse_fqdn(text) IS 'The parts of an FQDN, or an error that says what is wrong';

CREATE FUNCTION pml_internal.pml_fqdn_parts(fqdn text) RETURNS text[]
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_fqdn_parts_wrapper';
COMMENT ON FUNCTION pml_internal.pml_fqdn_parts(text) IS 'The five parts of an FQDN, or an error that says what is wrong';

-- Leakproof, which || isn't: under row-level security only leakproof expressions can use an index.
CREATE FUNCTION pml_internal.pml_scoped(org text, project text, name text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_scoped_wrapper';
COMMENT ON FUNCTION pml_internal.pml_scoped(text, text, text) IS 'org.project:name, the key of indexes on names and code';

-- Leakproof for the same reason.
CREATE FUNCTION pml_internal.pml_spelling(name text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_spelling_wrapper';
COMMENT ON FUNCTION pml_internal.pml_spelling(text) IS
  'The name as an identifier in snake_case; names that differ only in spelling (-, _, camelCase) have the same';

CREATE FUNCTION pml_internal.pml_check_part(what text, value text) RETURNS text
  LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_check_part_wrapper';
COMMENT ON FUNCTION pml_internal.pml_check_part(text, text) IS 'The value, if it can be part of an FQDN; else an error';

CREATE FUNCTION pml_internal.pml_check_name(name text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_check_name_wrapper';
COMMENT ON FUNCTION pml_internal.pml_check_name(text) IS 'The name, if it is valid for a capability; else an error';

-- Where a spec is read (locate in resolve.rs), the prefix stands for nothing either.
CREATE FUNCTION pml_internal.pml_plain_name(name text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN starts_with(name, 'cap:') THEN regexp_replace(name, '^(cap:)+', '') ELSE name END;
COMMENT ON FUNCTION pml_internal.pml_plain_name(text) IS 'The name without the prefix cap:';

CREATE FUNCTION pml_internal.pml_given_name(name text) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  plain text := pml_internal.pml_plain_name(name);
BEGIN
  IF starts_with(plain, 'mcp:') THEN
    RAISE EXCEPTION USING ERRCODE = 'PM004',
      MESSAGE = format('Invalid capability name: "%s". The namespace mcp is for servers.', pml_internal.pml_excerpt(plain)),
      HINT = 'Use another namespace, for example "fs:read_json"'
        || pml_internal.pml_hint('; pml_register_server registers a server.', '.');
  END IF;
  RETURN plain;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_given_name(text) IS
  'The name that a user or agent gives to a capability, without the prefix cap:; an error if it is a server''s';

CREATE FUNCTION pml_internal.pml_is_valid_name(name text) RETURNS boolean
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_is_valid_name_wrapper';
COMMENT ON FUNCTION pml_internal.pml_is_valid_name(text) IS 'Whether this is a display name, reserved forms included';

CREATE FUNCTION pml_internal.pml_is_unnamed(name text) RETURNS boolean
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_is_unnamed_wrapper';
COMMENT ON FUNCTION pml_internal.pml_is_unnamed(text) IS 'Whether this is the placeholder of a capability without a name';

CREATE FUNCTION pml_internal.pml_birth_parts(name text, code_hash text, tools text[]) RETURNS text[]
  LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_birth_parts_wrapper';
COMMENT ON FUNCTION pml_internal.pml_birth_parts(text, text, text[]) IS
  'Namespace and action for the FQDN of a new capability of this name (NULL: unnamed), code and tools';

CREATE FUNCTION pml_internal.pml_display_namespace(name text, birth_namespace text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN pg_catalog.strpos(name, ':') > 1 THEN pg_catalog.split_part(name, ':', 1) ELSE birth_namespace END;
COMMENT ON FUNCTION pml_internal.pml_display_namespace(text, text) IS
  'The namespace that people see: that of the display name, else that of its birth';

CREATE FUNCTION pml_internal.pml_glob_to_like(glob text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_glob_to_like_wrapper';
COMMENT ON FUNCTION pml_internal.pml_glob_to_like(text) IS 'The LIKE pattern of a glob: * is any text, ? any character';

CREATE FUNCTION pml_internal.pml_nearest(wanted text, candidates text[]) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_nearest_wrapper';
COMMENT ON FUNCTION pml_internal.pml_nearest(text, text[]) IS 'The most similar candidate, if any is similar enough';
