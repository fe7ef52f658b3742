-- Saves code as a capability, or finds the one that has the same code (deduplication).

CREATE FUNCTION pml_internal.pml_holder_of_code(code_hash text, name text, OUT id text, OUT display_name text)
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  place text := pml_internal.pml_scoped(pml_internal.pml_org(), pml_internal.pml_project(), pml_holder_of_code.code_hash);
BEGIN
  SELECT r.id, r.display_name INTO pml_holder_of_code.id, pml_holder_of_code.display_name
  FROM pml.capability_records r
  WHERE pml_internal.pml_scoped(r.org, r.project, r.code_hash) = place AND r.record_type = 'capability' AND r.deleted_at IS NULL
  ORDER BY r.display_name = pml_holder_of_code.name DESC, r.created_by = pml_internal.pml_actor() DESC, r.created_at
  LIMIT 1;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_holder_of_code(text, text) IS
  'The capability of the current scope that has this code, preferably under this name; NULLs if there is none';

CREATE FUNCTION pml_internal.pml_same_code(code_hash text, name text) RETURNS TABLE (id text, display_name text)
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT holder.id, holder.display_name
    FROM pml_internal.pml_holder_of_code(pml_same_code.code_hash, pml_same_code.name) AS holder WHERE holder.id IS NOT NULL;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_same_code(text, text) IS
  'As pml_holder_of_code; no row if there is none';

CREATE FUNCTION pml_internal.pml_check_same_code(existing_name text, name text) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF existing_name <> name AND NOT pml_internal.pml_is_unnamed(existing_name) THEN
    PERFORM pml_internal.pml_code_taken(pml_internal.pml_org(), pml_internal.pml_project(), existing_name, name);
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_same_code(text, text) IS
  'An error if the code already has another name';

CREATE FUNCTION pml_internal.pml_note_tools(fqdn text, tasks jsonb) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  called text[] := ARRAY(SELECT DISTINCT task ->> 'target' FROM jsonb_array_elements(tasks) AS task
                         WHERE task ->> 'kind' = 'tool' AND task ->> 'target' LIKE '%_:_%');
  -- Those that the code doesn't name, so that they aren't among its capabilities_used.
  dynamic text[] := ARRAY(
    SELECT DISTINCT task ->> 'target'
    FROM jsonb_array_elements(tasks) AS task JOIN pml.capability_records r ON r.id = pml_note_tools.fqdn
    WHERE task ->> 'kind' = 'capability' AND task ->> 'target' <> ALL (r.capabilities_used));
BEGIN
  IF dynamic <> '{}' THEN
    called := ARRAY(SELECT jsonb_array_elements_text(pml_internal.pml_called(dynamic, called) -> 'tools'));
  END IF;
  UPDATE pml.capability_records r
  SET tools_used = r.tools_used || ARRAY(SELECT tool FROM unnest(called) AS tool WHERE tool <> ALL (r.tools_used))
  WHERE r.id = fqdn AND NOT r.tools_used @> called;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_note_tools(text, jsonb) IS
  'Adds tools that a run called dynamically (mcp[x]), itself or through capabilities, to tools_used, which routing follows';

CREATE FUNCTION pml_internal.pml_keep_code(
    wanted pml.capability_records, hash text, OUT fqdn text, OUT is_new boolean)
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  existing record;
BEGIN
  LOOP
    existing := pml_internal.pml_holder_of_code(pml_keep_code.hash, wanted.display_name);
    EXIT WHEN existing.id IS NOT NULL;
    INSERT INTO pml.capability_records AS r
      (display_name, org, project, code_snippet, description, parameters_schema, tags, visibility,
       routing, routing_explicit, version_tag, tools_used, output_schema, source, structure)
    VALUES
      (wanted.display_name, pml_internal.pml_org(), pml_internal.pml_project(), wanted.code_snippet, wanted.description,
       wanted.parameters_schema, coalesce(wanted.tags, '{}'), coalesce(wanted.visibility, 'private'),
       coalesce(wanted.routing, 'cloud'), wanted.routing IS NOT NULL, wanted.version_tag,
       coalesce(wanted.tools_used, '{}'), wanted.output_schema, pml_internal.pml_kept_source(wanted.source),
       wanted.structure)
    ON CONFLICT DO NOTHING
    RETURNING r.id INTO fqdn;
    IF fqdn IS NOT NULL THEN
      is_new := true;
      RETURN;
    END IF;
    -- A concurrent session registered this code or took this FQDN: retry.
  END LOOP;
  PERFORM pml_internal.pml_check_same_code(existing.display_name, wanted.display_name);
  UPDATE pml.capability_records r
  SET display_name = coalesce(wanted.display_name, r.display_name),
      description = coalesce(r.description, wanted.description)
  WHERE r.id = existing.id
    AND (r.display_name <> wanted.display_name OR r.description IS NULL AND wanted.description IS NOT NULL);
  fqdn := existing.id;
  is_new := false;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_keep_code(pml.capability_records, text) IS
  'Saves code as a new capability, or returns the one that has the same code';

CREATE FUNCTION pml_internal.pml_keep_run_code(context jsonb, name text) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  wanted pml.capability_records;
  kept_fqdn text;
BEGIN
  wanted.display_name := name;
  wanted.code_snippet := context ->> 'code';
  wanted.description := context ->> 'description';
  wanted.source := context -> 'source';
  PERFORM set_config('pml.ran_with', coalesce(context ->> 'args', ''), true);
  SELECT kept.fqdn INTO kept_fqdn FROM pml_internal.pml_keep_code(wanted, context ->> 'hash') AS kept;
  PERFORM set_config('pml.ran_with', '', true);
  RETURN kept_fqdn;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_keep_run_code(jsonb, text) IS 'Saves the code of a successful run under this name';
