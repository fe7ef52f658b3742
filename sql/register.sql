-- A new capability, or the one that has this code already.

CREATE FUNCTION @extschema@.pml_register(
    code text, name text DEFAULT NULL, description text DEFAULT NULL, parameters_schema jsonb DEFAULT NULL,
    tags text[] DEFAULT NULL, visibility text DEFAULT NULL, routing text DEFAULT NULL, version_tag text DEFAULT NULL,
    tools_used text[] DEFAULT NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  here_org text := @extschema@.pml_org();
  here_project text := @extschema@.pml_project();
  whole_hash text := @extschema@.pml_code_hash(pml_register.code);
  existing record;
  fqdn text;
BEGIN
  PERFORM @extschema@.pml_check_may_act(here_org, here_project);
  PERFORM @extschema@.pml_check_name(pml_register.name), @extschema@.pml_check_visibility(pml_register.visibility),
          @extschema@.pml_check_routing(pml_register.routing), @extschema@.pml_version_tag(pml_register.version_tag);
  LOOP
    SELECT r.id, r.display_name INTO existing
    FROM pml.capability_records r
    WHERE r.org = here_org AND r.project = here_project AND r.code_hash = whole_hash
      AND r.record_type = 'capability' AND r.deleted_at IS NULL
    ORDER BY r.display_name = pml_register.name DESC, r.created_by = @extschema@.pml_actor() DESC, r.created_at
    LIMIT 1;
    EXIT WHEN FOUND;

    INSERT INTO pml.capability_records AS r
      (display_name, org, project, code_snippet, description, parameters_schema, tags, visibility,
       routing, routing_explicit, version_tag, tools_used)
    VALUES
      (pml_register.name, here_org, here_project, pml_register.code, pml_register.description,
       pml_register.parameters_schema, coalesce(pml_register.tags, '{}'), coalesce(pml_register.visibility, 'private'),
       coalesce(pml_register.routing, 'cloud'), pml_register.routing IS NOT NULL, pml_register.version_tag,
       coalesce(pml_register.tools_used, '{}'))
    ON CONFLICT DO NOTHING
    RETURNING r.id INTO fqdn;
    IF fqdn IS NOT NULL THEN
      RETURN fqdn;
    END IF;
    -- Another session has just registered this code, or taken this FQDN: look again.
  END LOOP;

  IF pml_register.name IS NOT NULL AND existing.display_name <> pml_register.name
     AND NOT @extschema@.pml_is_unnamed(existing.display_name) THEN
    RAISE EXCEPTION USING ERRCODE = 'PM003',
      MESSAGE = format('This code is already capability "%s" in scope %s.%s',
                       existing.display_name, here_org, here_project),
      HINT = format('Call it by that name, rename it with pml_rename, or copy it: SELECT pml_fork(''%s'', ''%s'').',
                    existing.display_name, pml_register.name);
  END IF;
  UPDATE pml.capability_records r
  SET usage_count = r.usage_count + 1,
      success_count = r.success_count + 1,
      display_name = coalesce(pml_register.name, r.display_name),
      description = coalesce(r.description, pml_register.description)
  WHERE r.id = existing.id;
  RETURN existing.id;
END
$$;
COMMENT ON FUNCTION @extschema@.pml_register(text, text, text, jsonb, text[], text, text, text, text[]) IS
  'Keeps code as a capability and returns its FQDN; code that the scope already has is reused';
