-- pml_register: code, a DAG or a tool becomes a capability.

CREATE FUNCTION pml_internal.pml_register(
    code text DEFAULT NULL, name text DEFAULT NULL, description text DEFAULT NULL, parameters_schema jsonb DEFAULT NULL,
    tags text[] DEFAULT NULL, visibility text DEFAULT NULL, routing text DEFAULT NULL, version_tag text DEFAULT NULL,
    tools_used text[] DEFAULT NULL, lift_literals boolean DEFAULT false, output_schema jsonb DEFAULT NULL,
    source jsonb DEFAULT NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  here_org text := pml_internal.pml_org();
  here_project text := pml_internal.pml_project();
  new_code text;
  compiled jsonb;
  existing record;
  fqdn text;
BEGIN
  IF num_nonnulls(pml_register.code, pml_register.source) <> 1 THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'pml_register needs code or a source, and not both',
      HINT = 'For example: SELECT pml_register(''return args.a + args.b'', name => ''math:add'').';
  END IF;
  PERFORM pml_internal.pml_check_may_act(here_org, here_project);
  PERFORM pml_internal.pml_check_name(pml_register.name), pml_internal.pml_check_visibility(pml_register.visibility),
          pml_internal.pml_check_routing(pml_register.routing), pml_internal.pml_version_tag(pml_register.version_tag);
  new_code := coalesce(pml_register.code, pml_internal.pml_source_code(pml_register.source));
  PERFORM pml_internal.pml_check_code(new_code);
  IF lift_literals THEN
    new_code := pml_internal.pml_lift_literals(new_code) ->> 'code';
  END IF;
  PERFORM pml_internal.pml_check_not_recursive(new_code, pml_register.name);
  compiled := pml_internal.pml_compile(new_code);
  LOOP
    SELECT same.* INTO existing FROM pml_internal.pml_same_code(compiled ->> 'hash', pml_register.name) AS same;
    EXIT WHEN FOUND;

    INSERT INTO pml.capability_records AS r
      (display_name, org, project, code_snippet, description, parameters_schema, tags, visibility,
       routing, routing_explicit, version_tag, tools_used, output_schema, source)
    VALUES
      (pml_register.name, here_org, here_project, new_code, pml_register.description,
       pml_register.parameters_schema, coalesce(pml_register.tags, '{}'), coalesce(pml_register.visibility, 'private'),
       coalesce(pml_register.routing, 'cloud'), pml_register.routing IS NOT NULL, pml_register.version_tag,
       coalesce(pml_register.tools_used, '{}'), pml_register.output_schema,
       pml_internal.pml_kept_source(pml_register.source))
    ON CONFLICT DO NOTHING
    RETURNING r.id INTO fqdn;
    IF fqdn IS NOT NULL THEN
      RETURN fqdn;
    END IF;
    -- Another session has just registered this code, or taken this FQDN: look again.
  END LOOP;

  PERFORM pml_internal.pml_check_same_code(existing.display_name, pml_register.name);
  UPDATE pml.capability_records r
  SET usage_count = r.usage_count + 1,
      success_count = r.success_count + 1,
      display_name = coalesce(pml_register.name, r.display_name),
      description = coalesce(r.description, pml_register.description)
  WHERE r.id = existing.id;
  RETURN existing.id;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_register(text, text, text, jsonb, text[], text, text, text, text[], boolean, jsonb, jsonb) IS
  'Keeps code as a capability and returns its FQDN; code that the scope already has is reused';
