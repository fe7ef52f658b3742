-- Renaming; old names become aliases.

CREATE FUNCTION pml_internal.pml_rename_record(
    target text, spec text, new_name text, description text, tags text[], visibility text) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  former text := (SELECT pml_internal.pml_name_here(r.org, r.project, r.display_name)
                  FROM pml.capability_records r WHERE r.id = target);
BEGIN
  PERFORM pml_internal.pml_check_visibility(pml_rename_record.visibility);
  UPDATE pml.capability_records r
  SET display_name = coalesce(CASE WHEN r.record_type = 'mcp-server' THEN pml_rename_record.new_name
                                   ELSE pml_internal.pml_given_name(pml_rename_record.new_name) END, r.display_name),
      description = coalesce(pml_rename_record.description, r.description),
      tags = coalesce(pml_rename_record.tags, r.tags),
      visibility = coalesce(pml_rename_record.visibility, r.visibility)
  WHERE r.id = target;
  PERFORM pml_internal.pml_check_changed(FOUND, spec, target);
  RETURN former;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_rename_record(text, text, text, text, text[], text) IS
  'pml_rename of the record with this FQDN; returns the name that it had';

CREATE FUNCTION pml_internal.pml_rename(
    name text, new_name text DEFAULT NULL, description text DEFAULT NULL, tags text[] DEFAULT NULL,
    visibility text DEFAULT NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  target text := (pml_internal.pml_locate(pml_rename.name)).fqdn;
BEGIN
  IF target IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'pml_rename needs a name',
      HINT = 'For example: SELECT pml_rename(''fs:read'', ''fs:read_json'').';
  END IF;
  PERFORM pml_internal.pml_rename_record(target, pml_rename.name, pml_rename.new_name, pml_rename.description,
                                         pml_rename.tags, pml_rename.visibility);
  RETURN target;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_rename(text, text, text, text[], text) IS
  'Changes what is given: the name (the old one becomes an alias), description, tags, visibility; returns the FQDN';

CREATE FUNCTION pml_internal.pml_release_alias(alias text) RETURNS void
  LANGUAGE plpgsql VOLATILE STRICT SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  scoped text[] := regexp_match(pml_release_alias.alias, '^([^.:]+)\.([^.:]+):(.+)$');
  here_org text := coalesce(scoped[1], pml_internal.pml_org());
  here_project text := coalesce(scoped[2], pml_internal.pml_project());
  bare text := coalesce(scoped[3], pml_release_alias.alias);
BEGIN
  PERFORM pml_internal.pml_check_may_act(here_org, here_project);
  -- Locks the record first, as a rename does, to avoid deadlocks.
  PERFORM FROM pml.capability_records r
  WHERE r.id = (SELECT a.target_fqdn FROM pml.capability_aliases a
                WHERE a.org = here_org AND a.project = here_project AND a.alias = bare)
  FOR NO KEY UPDATE;
  DELETE FROM pml.capability_aliases a WHERE a.org = here_org AND a.project = here_project AND a.alias = bare;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'PM001',
      MESSAGE = format('Alias not found: %s', pml_internal.pml_excerpt(pml_release_alias.alias)),
      HINT = 'pml_whois lists the aliases of a capability.';
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_release_alias(text) IS 'Frees a former name: it no longer resolves and can be given again';
