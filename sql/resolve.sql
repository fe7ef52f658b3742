-- Resolving a spec (name, org.project:name or FQDN, each with an optional @version) to a record.

CREATE FUNCTION pml_internal.pml_resolve(spec text) RETURNS text
  LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_resolve_wrapper';
COMMENT ON FUNCTION pml_internal.pml_resolve(text) IS
  'The FQDN that a name, org.project:name or FQDN stands for, if that and its @version exist and are visible';

CREATE TYPE pml_internal.pml_located AS (fqdn text, version integer, alias text);
COMMENT ON TYPE pml_internal.pml_located IS 'A record, one of its versions, and the alias by which it was found (or NULL)';

CREATE FUNCTION pml_internal.pml_locate(spec text) RETURNS pml_internal.pml_located
  LANGUAGE c STABLE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'pml_locate_wrapper';
COMMENT ON FUNCTION pml_internal.pml_locate(text) IS
  'What pml_resolve finds, with the version that is meant';

CREATE FUNCTION pml_internal.pml_alias_warning(spec text) RETURNS text
  LANGUAGE c STABLE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'pml_alias_warning_wrapper';
COMMENT ON FUNCTION pml_internal.pml_alias_warning(text) IS
  'What pml_resolve warns of for this spec, as text; NULL if it uses no alias or means nothing';

CREATE FUNCTION pml_internal.pml_name_suggestion(org text, project text, name text) RETURNS text
  LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  -- The neighbours in the index: all names of a small scope, the same namespace in a large one.
  SELECT pml_internal.pml_nearest(pml_name_suggestion.name, array_agg(near.display_name::text))
  FROM (
    (SELECT r.display_name FROM pml.capability_records r
     WHERE r.org = pml_name_suggestion.org AND r.project = pml_name_suggestion.project
       AND r.display_name >= pml_name_suggestion.name AND r.deleted_at IS NULL
     ORDER BY r.display_name LIMIT 500)
    UNION ALL
    (SELECT r.display_name FROM pml.capability_records r
     WHERE r.org = pml_name_suggestion.org AND r.project = pml_name_suggestion.project
       AND r.display_name < pml_name_suggestion.name AND r.deleted_at IS NULL
     ORDER BY r.display_name DESC LIMIT 500)) AS near
  WHERE NOT pml_internal.pml_is_unnamed(near.display_name)
$$;
COMMENT ON FUNCTION pml_internal.pml_name_suggestion(text, text, text) IS
  'The visible name of this scope that is most like the given one';
