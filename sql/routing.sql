-- Where code must run: on the caller's machine as soon as one of its tools is only there.

CREATE FUNCTION pml_internal.pml_routing_in(org text, project text, tools text[]) RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  IF tools = '{}' THEN
    RETURN 'cloud';
  END IF;
  RETURN (
  SELECT CASE WHEN bool_or(found.routing = 'local') THEN 'local' ELSE 'cloud' END
  -- OFFSET 0 keeps the keys values, so that they reach the indexes before the policy (see pml_capabilities_named).
  FROM (SELECT split_part(given, '@', 1) AS fqdn,
               pml_internal.pml_scoped(pml_routing_in.org, pml_routing_in.project, given) AS name,
               pml_internal.pml_scoped(pml_routing_in.org, pml_routing_in.project,
                                       'mcp:' || split_part(given, ':', 1)) AS server,
               'pml.std:mcp:' || split_part(given, ':', 1) AS base_server
        FROM unnest(tools) AS given OFFSET 0) AS tool
  LEFT JOIN LATERAL (
    -- A capability first, by FQDN or name, then the server of the scope, then the base server.
    SELECT r.routing
    FROM (SELECT o.routing, o.record_type, true AS is_here FROM pml.capability_records o
          WHERE o.id = tool.fqdn AND o.deleted_at IS NULL
          UNION ALL
          SELECT o.routing, o.record_type, true FROM pml.capability_records o
          WHERE pml_internal.pml_scoped(o.org, o.project, o.display_name) = tool.name AND o.deleted_at IS NULL
          UNION ALL
          SELECT o.routing, o.record_type, true FROM pml.capability_records o
          WHERE pml_internal.pml_scoped(o.org, o.project, o.display_name) = tool.server AND o.deleted_at IS NULL
          UNION ALL
          SELECT o.routing, o.record_type, false FROM pml.capability_records o
          WHERE pml_internal.pml_scoped(o.org, o.project, o.display_name) = tool.base_server AND o.deleted_at IS NULL) AS r
    ORDER BY r.record_type, r.is_here DESC
    LIMIT 1) AS found ON true);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_routing_in(text, text, text[]) IS 'pml_routing, seen from the given scope';

CREATE FUNCTION pml_internal.pml_routing(tools text[]) RETURNS text
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT pml_internal.pml_routing_in(pml_internal.pml_org(), pml_internal.pml_project(), tools)
$$;
COMMENT ON FUNCTION pml_internal.pml_routing(text[]) IS
  'local if any of the tools (server:tool) belongs to a local server or is a local capability, else cloud';
