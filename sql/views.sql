-- Views for people and reports. Each is a function scan, so that plans, locks and statistics of a query on top reveal
-- nothing about hidden rows.

CREATE FUNCTION pml_internal.pml_capabilities()
  RETURNS TABLE (fqdn text, org text, project text, name text, namespace text, type text, description text, tags text[],
                 visibility text, routing text, version integer, version_tag text, parameters jsonb, output jsonb,
                 tools_used text[], code text, code_url text, usage_count bigint, success_rate numeric, verified boolean,
                 forked_from text, created_by text, created_at timestamptz, updated_by text, updated_at timestamptz)
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.id, r.org, r.project, r.display_name, pml_internal.pml_display_namespace(r.display_name, r.namespace),
         r.record_type, r.description, r.tags, r.visibility, pml_internal.pml_current_routing(r), r.version, r.version_tag, r.parameters_schema,
         r.output_schema, r.tools_used, pml_internal.pml_display_code(r.code_snippet), r.code_url, used.uses,
         pml_internal.pml_success_rate(used.successes, used.uses), r.verified,
         -- Hidden if the reader can't see the source.
         (SELECT source.id FROM pml.capability_records source WHERE source.id = r.forked_from),
         r.created_by, r.created_at, r.updated_by, r.updated_at
  FROM pml.capability_records r
  CROSS JOIN LATERAL pml_internal.pml_used(r.id, r.usage_count, r.success_count, r.total_latency_ms) AS used
  WHERE r.deleted_at IS NULL
$$;
COMMENT ON FUNCTION pml_internal.pml_capabilities() IS 'What the view pml.capabilities shows: every capability and server that is seen';

CREATE FUNCTION pml_internal.pml_capability_history()
  RETURNS TABLE (fqdn text, name text, version integer, version_tag text, change_summary text, updated_by text,
                 updated_at timestamptz, code text)
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.id, r.display_name, v.version, v.version_tag, v.change_summary, v.updated_by, v.updated_at,
         pml_internal.pml_display_code(v.code_snippet)
  FROM pml.capability_records r JOIN pml.capability_versions v ON v.capability_fqdn = r.id
  WHERE r.deleted_at IS NULL
$$;
COMMENT ON FUNCTION pml_internal.pml_capability_history() IS 'What the view pml.capability_history shows: every version';

CREATE FUNCTION pml_internal.pml_aliases()
  RETURNS TABLE (org text, project text, alias text, fqdn text, name text, created_at timestamptz)
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT a.org, a.project, a.alias, r.id, r.display_name, a.created_at
  FROM pml.capability_aliases a JOIN pml.capability_records r ON r.id = a.target_fqdn
$$;
COMMENT ON FUNCTION pml_internal.pml_aliases() IS 'What the view pml.aliases shows: former names that still resolve';

CREATE FUNCTION pml_internal.pml_renames()
  RETURNS TABLE (fqdn text, old_name text, new_name text, renamed_by text, renamed_at timestamptz)
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT h.capability_id, h.old_name, h.new_name, h.renamed_by, h.renamed_at FROM pml.capability_rename_history h
$$;
COMMENT ON FUNCTION pml_internal.pml_renames() IS 'What the view pml.renames shows: who renamed what';

CREATE FUNCTION pml_internal.pml_dependencies()
  RETURNS TABLE (from_fqdn text, to_fqdn text, edge_type text, created_at timestamptz)
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT d.from_fqdn, d.to_fqdn, d.edge_type, d.created_at FROM pml.capability_dependencies d
$$;
COMMENT ON FUNCTION pml_internal.pml_dependencies() IS 'What the view pml.dependencies shows: which capability calls which';

CREATE FUNCTION pml_internal.pml_server_tools()
  RETURNS TABLE (org text, project text, tool text, server text, name text, wire_name text, description text,
                 input_schema jsonb, output_schema jsonb, cached_at timestamptz, clashes_with text)
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.org, t.project, t.tool_id, t.server_id, t.name, t.tool_name, t.description, t.input_schema, t.output_schema,
         t.cached_at,
         (SELECT n.name FROM pml.tool_names n
          WHERE pml_internal.pml_scoped(n.org, n.project, pml_internal.pml_spelling(n.name))
                = pml_internal.pml_scoped(t.org, t.project, pml_internal.pml_spelling(t.tool_id))
            AND EXISTS (SELECT FROM pml.capability_records r
                        WHERE r.id = n.fqdn AND r.display_name = n.name AND r.deleted_at IS NULL)
          ORDER BY n.name LIMIT 1)
  FROM pml.tool_schema t
$$;
COMMENT ON FUNCTION pml_internal.pml_server_tools() IS 'What the view pml.tools shows: the tools of MCP servers';

CREATE FUNCTION pml_internal.pml_runs()
  RETURNS TABLE (id uuid, workflow_id uuid, parent_id uuid, org text, project text, actor text, fqdn text, name text,
                 intent text, args jsonb, path text[], decisions jsonb, tasks json, success boolean, duration_ms integer,
                 error text, executed_at timestamptz)
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id, t.workflow_id, t.parent_trace_id, t.org, t.project, t.user_id, r.id, r.display_name, t.intent,
         t.initial_context, t.executed_path, t.decisions, t.task_results, t.success, t.duration_ms, t.error_message,
         t.executed_at
  FROM pml.execution_trace t LEFT JOIN pml.capability_records r ON r.id = t.capability_id
$$;
COMMENT ON FUNCTION pml_internal.pml_runs() IS 'What the view pml.runs shows: one''s own runs, and those inside them';

CREATE FUNCTION pml_internal.pml_calls()
  RETURNS TABLE (org text, project text, actor text, server text, tool text, fqdn text, success boolean,
                 duration_ms integer, error text, used_at timestamptz)
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT u.org, u.project, u.actor, u.server_id, u.tool_id, r.id, u.success, u.duration_ms, u.error_message, u.used_at
  FROM pml.tool_usage u LEFT JOIN pml.capability_records r ON r.id = u.capability_fqdn
$$;
COMMENT ON FUNCTION pml_internal.pml_calls() IS 'What the view pml.calls shows: one''s own calls of tools and capabilities';

CREATE FUNCTION pml_internal.pml_grants()
  RETURNS TABLE (role_name name, org text, project text, granted_by text, granted_at timestamptz)
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT g.role_name, g.org, g.project, g.granted_by, g.granted_at FROM pml.scope_grants g
$$;
COMMENT ON FUNCTION pml_internal.pml_grants() IS 'What the view pml.grants shows: the scopes of one''s own roles; for admins all';
