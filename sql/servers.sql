-- MCP servers are records too: where their tools run, and where their implementation is.

CREATE FUNCTION pml_internal.pml_check_server_name(name text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pml_internal.pml_check_part('server name', regexp_replace(coalesce($1, ''), '^mcp:', ''));
  RETURN 'mcp:' || regexp_replace($1, '^mcp:', '');
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

CREATE FUNCTION pml_internal.pml_register_tool(
    server text, tool text, description text DEFAULT NULL, input_schema jsonb DEFAULT NULL,
    output_schema jsonb DEFAULT NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  here_org text := pml_internal.pml_org();
  here_project text := pml_internal.pml_project();
  server_id text := substr(pml_internal.pml_check_server_name(pml_register_tool.server), 5);
BEGIN
  PERFORM pml_internal.pml_check_may_act(here_org, here_project);
  IF coalesce(pml_register_tool.tool, '') !~ '^[^[:space:][:cntrl:]]{1,128}$' THEN
    RAISE EXCEPTION USING ERRCODE = 'PM004',
      MESSAGE = 'Invalid tool name', HINT = 'A tool''s name has 1 to 128 characters and no white space.';
  END IF;
  INSERT INTO pml.tool_schema AS t
    (org, project, tool_id, server_id, name, description, input_schema, output_schema)
  VALUES
    (here_org, here_project, server_id || ':' || pml_register_tool.tool, server_id, pml_register_tool.tool,
     pml_register_tool.description, coalesce(pml_register_tool.input_schema, '{"type": "object"}'),
     pml_register_tool.output_schema)
  ON CONFLICT (org, project, tool_id) DO UPDATE
    SET description = excluded.description, input_schema = excluded.input_schema,
        output_schema = excluded.output_schema, definition = NULL, cached_at = now();
  RETURN server_id || ':' || pml_register_tool.tool;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_register_tool(text, text, text, jsonb, jsonb) IS
  'Records what a tool of a server takes and gives; returns server:tool';
