-- Routing: code runs locally as soon as one of the tools that it calls is local.

CREATE FUNCTION pml_internal.pml_routing_in(org text, project text, tools text[]) RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  IF tools = '{}' THEN
    RETURN 'cloud';
  END IF;
  RETURN (
  SELECT CASE WHEN bool_or(found.routing = 'local') THEN 'local' ELSE 'cloud' END
  -- OFFSET 0 computes the keys first (see pml_capabilities_named).
  FROM (SELECT split_part(given, '@', 1) AS fqdn,
               pml_internal.pml_scoped(pml_routing_in.org, pml_routing_in.project, given) AS name,
               pml_internal.pml_scoped(pml_routing_in.org, pml_routing_in.project,
                                       'mcp:' || split_part(given, ':', 1)) AS server,
               'pml.std:mcp:' || split_part(given, ':', 1) AS base_server
        FROM unnest(tools) AS given OFFSET 0) AS tool
  LEFT JOIN LATERAL (
    -- A capability first, by FQDN or name, then the server of the scope, also by a former name, then the base server.
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
          SELECT o.routing, o.record_type, true
          FROM pml.capability_aliases a JOIN pml.capability_records o ON o.id = a.target_fqdn
          WHERE pml_internal.pml_scoped(a.org, a.project, a.alias) = tool.server AND o.deleted_at IS NULL
          UNION ALL
          SELECT o.routing, o.record_type, false FROM pml.capability_records o
          WHERE pml_internal.pml_scoped(o.org, o.project, o.display_name) = tool.base_server AND o.deleted_at IS NULL) AS r
    ORDER BY r.record_type, r.is_here DESC
    LIMIT 1) AS found ON true);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_routing_in(text, text, text[]) IS 'pml_routing, seen from the given scope';

CREATE FUNCTION pml_internal.pml_follow_routing(changed pml.capability_records, former_name text) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  frontier text[] := ARRAY[changed.id];
  servers text[] := ARRAY[substr(changed.display_name, 5), substr(former_name, 5)];
BEGIN
  IF changed.record_type = 'mcp-server' THEN
    -- A private server affects its creator only; base servers affect every scope without a server of that name.
    WITH followed AS (
      UPDATE pml.capability_records r SET routing = NULL
      WHERE ((r.org, r.project) = (changed.org, changed.project) OR (changed.org, changed.project) = ('pml', 'std'))
        AND (changed.visibility <> 'private' OR r.created_by = changed.created_by)
        AND r.record_type = 'capability' AND r.deleted_at IS NULL AND NOT r.routing_explicit
        AND EXISTS (SELECT FROM unnest(r.tools_used) AS tool WHERE split_part(tool, ':', 1) = ANY (servers))
        AND r.routing <> pml_internal.pml_routing_in(r.org, r.project, r.tools_used || r.capabilities_used)
      RETURNING r.id)
    SELECT coalesce(array_agg(f.id), '{}') INTO frontier FROM followed f;
  END IF;
  -- Breadth first. Each record changes at most once in either direction, so that this terminates in cycles too.
  WHILE frontier <> '{}' LOOP
    WITH followed AS (
      UPDATE pml.capability_records r SET routing = NULL
      WHERE r.id IN (SELECT d.from_fqdn FROM pml.capability_dependencies d
                     WHERE d.to_fqdn = ANY (frontier) AND d.edge_type = 'contains')
        AND r.deleted_at IS NULL AND NOT r.routing_explicit
        AND r.routing <> pml_internal.pml_routing_in(r.org, r.project, r.tools_used || r.capabilities_used)
      RETURNING r.id)
    SELECT coalesce(array_agg(f.id), '{}') INTO frontier FROM followed f;
  END LOOP;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_follow_routing(pml.capability_records, text) IS
  'Propagates a change of routing to all direct and indirect callers whose routing isn''t explicit';

CREATE FUNCTION pml_internal.pml_routing(tools text[]) RETURNS text
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT pml_internal.pml_routing_in(pml_internal.pml_org(), pml_internal.pml_project(), pml_routing.tools)
$$;
COMMENT ON FUNCTION pml_internal.pml_routing(text[]) IS
  'local if any of the tools (server:tool) belongs to a local server or is a local capability, else cloud';
