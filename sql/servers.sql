-- MCP servers are records too: where their tools run, and where their implementation is.

CREATE FUNCTION pml_internal.pml_check_server_name(name text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pml_internal.pml_check_part('server name', regexp_replace(coalesce(name, ''), '^mcp:', ''));
  RETURN 'mcp:' || regexp_replace(name, '^mcp:', '');
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_server_name(text) IS 'The name of a server as mcp:<name>, or an error';

CREATE FUNCTION pml_internal.pml_register_server(
    name text, routing text DEFAULT NULL, code_url text DEFAULT NULL, version_tag text DEFAULT NULL,
    visibility text DEFAULT NULL, description text DEFAULT NULL, tags text[] DEFAULT NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  here_org text := pml_internal.pml_org();
  here_project text := pml_internal.pml_project();
  full_name text := pml_internal.pml_check_server_name(pml_register_server.name);
  tag text := pml_internal.pml_version_tag(pml_register_server.version_tag);
  fqdn text;
BEGIN
  PERFORM pml_internal.pml_check_may_act(here_org, here_project);
  PERFORM pml_internal.pml_check_routing(pml_register_server.routing),
          pml_internal.pml_check_visibility(pml_register_server.visibility);
  UPDATE pml.capability_records r
  SET routing = coalesce(pml_register_server.routing, r.routing),
      code_url = coalesce(pml_register_server.code_url, r.code_url),
      version_tag = coalesce(tag, r.version_tag),
      visibility = coalesce(pml_register_server.visibility, r.visibility),
      description = coalesce(pml_register_server.description, r.description),
      tags = coalesce(pml_register_server.tags, r.tags)
  WHERE r.org = here_org AND r.project = here_project AND r.display_name = full_name AND r.deleted_at IS NULL
  RETURNING r.id INTO fqdn;
  IF fqdn IS NULL THEN
    INSERT INTO pml.capability_records AS r
      (display_name, org, project, record_type, routing, routing_explicit, code_url, version_tag, visibility,
       description, tags)
    VALUES
      (full_name, here_org, here_project, 'mcp-server', coalesce(pml_register_server.routing, 'cloud'), true,
       pml_register_server.code_url, tag, coalesce(pml_register_server.visibility, 'private'),
       pml_register_server.description, coalesce(pml_register_server.tags, '{}'))
    RETURNING r.id INTO fqdn;
  END IF;
  RETURN fqdn;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_register_server(text, text, text, text, text, text, text[]) IS
  'Registers an MCP server as mcp:<name>, or changes what is given of one that is there; returns its FQDN';
