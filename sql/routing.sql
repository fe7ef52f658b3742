-- Routing: code runs locally as soon as one of the tools that it calls is local. A record has the routing of what it calls in
-- its own scope, kept by triggers; what it calls in other scopes is added when it is read, since a change there must not lock
-- rows here.

CREATE FUNCTION pml_internal.pml_called_here(caller pml.capability_records) RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT (pml_called_here.caller).tools_used || ARRAY(
    SELECT key FROM unnest((pml_called_here.caller).capabilities_used) AS key
    WHERE starts_with(key, (pml_called_here.caller).org || '.' || (pml_called_here.caller).project || '.'))
$$;
COMMENT ON FUNCTION pml_internal.pml_called_here(pml.capability_records) IS 'The tools and the capabilities of its scope that a record calls';

CREATE FUNCTION pml_internal.pml_routing_in(
    org text, project text, viewer text, tools text[], is_current boolean DEFAULT false) RETURNS text
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
    SELECT CASE WHEN is_current THEN pml_internal.pml_current_routing(r.found) ELSE (r.found).routing END AS routing
    FROM (SELECT o AS found, o.record_type, true AS is_here FROM pml.capability_records o
          WHERE o.id = tool.fqdn
          UNION ALL
          SELECT o, o.record_type, true FROM pml.capability_records o
          WHERE pml_internal.pml_scoped(o.org, o.project, o.display_name) = tool.name
          UNION ALL
          SELECT o, o.record_type, true FROM pml.capability_records o
          WHERE pml_internal.pml_scoped(o.org, o.project, o.display_name) = tool.server
          UNION ALL
          SELECT o, o.record_type, true
          FROM pml.capability_aliases a JOIN pml.capability_records o ON o.id = a.target_fqdn
          WHERE pml_internal.pml_scoped(a.org, a.project, a.alias) = tool.server
          UNION ALL
          SELECT o, o.record_type, false FROM pml.capability_records o
          WHERE pml_internal.pml_scoped(o.org, o.project, o.display_name) = tool.base_server) AS r
    WHERE (r.found).deleted_at IS NULL
      AND pml_internal.pml_visible_from(pml_routing_in.org, pml_routing_in.project, viewer, (r.found).org,
                                        (r.found).project, (r.found).visibility, (r.found).created_by)
    ORDER BY r.record_type, r.is_here DESC
    LIMIT 1) AS found ON true);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_routing_in(text, text, text, text[], boolean) IS
  'The routing of these tools and capabilities as the viewer in the scope sees it; is_current: with what they call in other scopes';

CREATE FUNCTION pml_internal.pml_current_routing(asked pml.capability_records) RETURNS text
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  reached text[] := ARRAY[asked.id];
  frontier text[] := reached;
BEGIN
  IF asked.capabilities_used = '{}' OR asked.routing_explicit OR asked.routing = 'local' THEN
    RETURN asked.routing;
  END IF;
  -- Breadth first, each capability once.
  WHILE frontier <> '{}' LOOP
    IF EXISTS (SELECT FROM pml.capability_records r
               WHERE r.id = ANY (frontier) AND r.routing = 'local' AND r.deleted_at IS NULL) THEN
      RETURN 'local';
    END IF;
    frontier := ARRAY(SELECT DISTINCT d.to_fqdn FROM pml.capability_dependencies d
                      JOIN pml.capability_records r ON r.id = d.from_fqdn
                      WHERE d.from_fqdn = ANY (frontier) AND d.edge_type = 'contains' AND d.to_fqdn <> ALL (reached)
                        AND NOT r.routing_explicit AND r.deleted_at IS NULL);
    reached := reached || frontier;
  END LOOP;
  RETURN 'cloud';
END
$$;
COMMENT ON FUNCTION pml_internal.pml_current_routing(pml.capability_records) IS
  'The routing of a record with all that it calls, in other scopes too';

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
        AND r.routing <> pml_internal.pml_routing_in(r.org, r.project, r.created_by, pml_internal.pml_called_here(r))
      RETURNING r.id)
    SELECT coalesce(array_agg(f.id), '{}') INTO frontier FROM followed f;
  END IF;
  -- Breadth first. Each record changes at most once in either direction, so that this terminates in cycles too.
  WHILE frontier <> '{}' LOOP
    WITH followed AS (
      UPDATE pml.capability_records r SET routing = NULL
      WHERE r.id IN (SELECT caller.id FROM pml.capability_dependencies d
                     JOIN pml.capability_records called ON called.id = d.to_fqdn
                     JOIN pml.capability_records caller ON caller.id = d.from_fqdn
                     WHERE d.to_fqdn = ANY (frontier) AND d.edge_type = 'contains'
                       AND (caller.org, caller.project) = (called.org, called.project))
        AND r.deleted_at IS NULL AND NOT r.routing_explicit
        AND r.routing <> pml_internal.pml_routing_in(r.org, r.project, r.created_by, pml_internal.pml_called_here(r))
      RETURNING r.id)
    SELECT coalesce(array_agg(f.id), '{}') INTO frontier FROM followed f;
  END LOOP;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_follow_routing(pml.capability_records, text) IS
  'Propagates a change of routing to the direct and indirect callers of its scope whose routing isn''t explicit';

CREATE FUNCTION pml_internal.pml_routing(tools text[]) RETURNS text
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT pml_internal.pml_routing_in(
    pml_internal.pml_org(), pml_internal.pml_project(), pml_internal.pml_actor(), pml_routing.tools, true)
$$;
COMMENT ON FUNCTION pml_internal.pml_routing(text[]) IS
  'local if any of the tools (server:tool) belongs to a local server or is a local capability, else cloud';
