-- Copies of capabilities.

CREATE FUNCTION pml_internal.pml_fork(source text, name text) RETURNS text
  LANGUAGE plpgsql VOLATILE STRICT SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  located pml_internal.pml_located := pml_internal.pml_locate(pml_fork.source);
  fqdn text;
BEGIN
  PERFORM pml_internal.pml_check_may_act(pml_internal.pml_org(), pml_internal.pml_project());
  LOOP
    INSERT INTO pml.capability_records AS new
      (display_name, org, project, record_type, code_snippet, parameters_schema, description, tags, tools_used,
       routing, routing_explicit, code_url, output_schema, source, parent_id, forked_from, change_summary)
    SELECT CASE WHEN r.record_type = 'mcp-server' THEN pml_fork.name ELSE pml_internal.pml_given_name(pml_fork.name) END,
           pml_internal.pml_org(), pml_internal.pml_project(), r.record_type, v.code_snippet,
           CASE WHEN v.parameters_explicit THEN v.parameters_schema END, r.description, r.tags, '{}', r.routing,
           r.routing_explicit, v.code_url, CASE WHEN v.output_explicit THEN v.output_schema END, v.source, r.id, r.id,
           format('Forked from %s version %s', pml_internal.pml_scoped(r.org, r.project, r.display_name), v.version)
    FROM pml.capability_records r JOIN pml.capability_versions v ON v.capability_fqdn = r.id
    WHERE r.id = located.fqdn AND v.version = located.version
    ON CONFLICT DO NOTHING
    RETURNING new.id INTO fqdn;
    EXIT WHEN fqdn IS NOT NULL;
    -- A concurrent session took this FQDN: retry with a longer hash.
  END LOOP;
  RETURN fqdn;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_fork(text, text) IS
  'Copies a visible capability, at the version given, into the current scope under a new name';
