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
  wanted pml.capability_records;
  kept record;
BEGIN
  pml_register.name := pml_internal.pml_given_name(pml_register.name);
  IF num_nonnulls(pml_register.code, pml_register.source) <> 1 THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'pml_register needs code or a source, and not both',
      HINT = 'For example: SELECT pml_register(''return args.a + args.b'', name => ''math:add'').';
  END IF;
  new_code := coalesce(pml_register.code, pml_internal.pml_source_code(pml_register.source));
  -- One statement, because each costs as much as the checks.
  PERFORM pml_internal.pml_check_may_act(here_org, here_project),
          pml_internal.pml_check_name(pml_register.name), pml_internal.pml_check_visibility(pml_register.visibility),
          pml_internal.pml_check_routing(pml_register.routing), pml_internal.pml_version_tag(pml_register.version_tag),
          pml_internal.pml_check_code(new_code);
  IF lift_literals THEN
    new_code := pml_internal.pml_lift_literals(new_code) ->> 'code';
  END IF;
  PERFORM pml_internal.pml_check_not_recursive(new_code, pml_register.name);
  compiled := pml_internal.pml_compile(new_code);
  wanted.display_name := pml_register.name;
  wanted.code_snippet := compiled ->> 'linked';
  wanted.structure := compiled;
  wanted.description := pml_register.description;
  wanted.parameters_schema := pml_register.parameters_schema;
  wanted.tags := pml_register.tags;
  wanted.visibility := pml_register.visibility;
  wanted.routing := pml_register.routing;
  wanted.version_tag := pml_register.version_tag;
  wanted.tools_used := pml_register.tools_used;
  wanted.output_schema := pml_register.output_schema;
  wanted.source := pml_register.source;
  kept := pml_internal.pml_keep_code(wanted, compiled ->> 'hash');
  IF NOT kept.is_new THEN
    UPDATE pml.capability_records r
    SET usage_count = r.usage_count + 1, success_count = r.success_count + 1 WHERE r.id = kept.fqdn;
  END IF;
  RETURN kept.fqdn;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_register(text, text, text, jsonb, text[], text, text, text, text[], boolean, jsonb, jsonb) IS
  'Keeps code as a capability and returns its FQDN; code that the scope already has is reused';
