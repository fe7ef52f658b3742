-- New versions and rollbacks.

CREATE FUNCTION pml_internal.pml_update(
    spec text, code text DEFAULT NULL, version_tag text DEFAULT NULL, change_summary text DEFAULT NULL,
    parameters_schema jsonb DEFAULT NULL, output_schema jsonb DEFAULT NULL, source jsonb DEFAULT NULL)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  target text := (pml_internal.pml_locate(pml_update.spec)).fqdn;
  tag text := pml_internal.pml_version_tag(pml_update.version_tag);
  new_source jsonb := pml_internal.pml_kept_source(pml_update.source);
  compiled jsonb;
  new_code text;
  result integer;
BEGIN
  IF target IS NULL OR num_nonnulls(pml_update.code, pml_update.source) <> 1 THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'pml_update needs a spec, and code or a source',
      HINT = 'For example: SELECT pml_update(''math:add'', ''return args.a + args.b'').';
  END IF;
  PERFORM pml_internal.pml_check_code(coalesce(pml_update.code, '-'));
  compiled := pml_internal.pml_compile(coalesce(pml_update.code, pml_internal.pml_source_code(pml_update.source)));
  new_code := compiled ->> 'linked';
  PERFORM pml_internal.pml_check_tag_free(target, split_part(pml_update.spec, '@', 1), tag);
  UPDATE pml.capability_records r
  SET code_snippet = new_code,
      source = new_source,
      structure = CASE WHEN r.code_snippet = new_code THEN r.structure ELSE compiled END,
      version_tag = coalesce(tag, r.version_tag),
      parameters_schema = coalesce(pml_update.parameters_schema, r.parameters_schema),
      output_schema = coalesce(pml_update.output_schema, r.output_schema),
      -- Without a change there is nothing to summarise.
      change_summary = CASE
        WHEN (r.code_snippet, r.parameters_schema, r.output_schema) IS DISTINCT FROM
             (new_code, coalesce(pml_update.parameters_schema, r.parameters_schema),
              coalesce(pml_update.output_schema, r.output_schema)) OR tag IS NOT NULL
        THEN pml_update.change_summary ELSE r.change_summary END
  WHERE r.id = target
  RETURNING r.version INTO result;
  PERFORM pml_internal.pml_check_changed(FOUND, pml_update.spec, target);
  RETURN result;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_update(text, text, text, text, jsonb, jsonb, jsonb) IS
  'Makes a new version with this code and returns its number; the same code without a new tag changes nothing';

CREATE FUNCTION pml_internal.pml_rollback(spec text) RETURNS integer
  LANGUAGE plpgsql VOLATILE STRICT SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  located pml_internal.pml_located := pml_internal.pml_locate(spec);
  old record;
  changed boolean;
  result integer;
BEGIN
  SELECT * INTO old FROM pml.capability_versions v
  WHERE v.capability_fqdn = located.fqdn AND v.version = located.version;
  PERFORM set_config('pml.restore_version', 'on', true);
  UPDATE pml.capability_records r
  SET code_snippet = old.code_snippet, source = old.source, code_url = old.code_url,
      parameters_schema = old.parameters_schema, parameters_explicit = old.parameters_explicit,
      output_schema = old.output_schema, output_explicit = old.output_explicit,
      change_summary = CASE
        WHEN (r.code_snippet, r.parameters_schema, r.output_schema, r.code_url) IS DISTINCT FROM
             (old.code_snippet, old.parameters_schema, old.output_schema, old.code_url)
        THEN format('Rollback to version %s', old.version) ELSE r.change_summary END
  WHERE r.id = located.fqdn
  RETURNING r.version INTO result;
  changed := FOUND;
  PERFORM set_config('pml.restore_version', 'off', true);
  PERFORM pml_internal.pml_check_changed(changed, spec, located.fqdn);
  RETURN result;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_rollback(text) IS
  'Makes the version that the spec names the newest again, as a new version, and returns its number';
