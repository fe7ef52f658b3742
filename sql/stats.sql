-- Counts for metrics and limits.

CREATE FUNCTION pml_internal.pml_rows_estimate(partitioned regclass) RETURNS bigint
  LANGUAGE sql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = pml_rows_estimate.partitioned
$$;
COMMENT ON FUNCTION pml_internal.pml_rows_estimate(regclass) IS 'About how many rows the partitions of a table have';

CREATE FUNCTION pml_internal.pml_stats() RETURNS jsonb
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object(
    'version', (SELECT e.extversion FROM pg_extension e WHERE e.extname = 'pml'),
    'inRecovery', pg_is_in_recovery(),
    'capabilities', r.named + r.unnamed, 'namedCapabilities', r.named, 'unnamedCapabilities', r.unnamed,
    'servers', r.servers, 'scopes', r.scopes, 'usageCount', r.usage, 'successCount', r.success,
    'tools', (SELECT count(*) FROM pml.tool_schema),
    'runningWorkflows', (SELECT count(*) FROM pml.workflow_state w WHERE w.answer IS NULL AND w.expires_at >= now()),
    'expiredRows', (SELECT count(*) FROM pml.workflow_state w WHERE w.expires_at < now()),
    'validTokens', (SELECT count(*) FROM pml.tokens t
                    WHERE t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())),
    -- Large, append-only tables: estimates of the last VACUUM or ANALYZE.
    'tracesEstimate', pml_internal.pml_rows_estimate('pml.execution_trace'),
    'callsEstimate', pml_internal.pml_rows_estimate('pml.tool_usage'))
  FROM (SELECT count(*) FILTER (WHERE c.record_type = 'capability' AND NOT pml_internal.pml_is_unnamed(c.display_name)) AS named,
               count(*) FILTER (WHERE c.record_type = 'capability' AND pml_internal.pml_is_unnamed(c.display_name)) AS unnamed,
               count(*) FILTER (WHERE c.record_type = 'mcp-server') AS servers,
               count(DISTINCT c.org || '.' || c.project) AS scopes,
               (coalesce(sum(c.usage_count), 0) + (SELECT coalesce(sum(u.uses), 0) FROM pml.capability_usage u))::bigint AS usage,
               (coalesce(sum(c.success_count), 0) + (SELECT coalesce(sum(u.successes), 0) FROM pml.capability_usage u))::bigint AS success
        FROM pml.capability_records c WHERE c.deleted_at IS NULL) AS r
$$;
COMMENT ON FUNCTION pml_internal.pml_stats() IS 'Counts over all scopes (proxies and admins)';

CREATE FUNCTION pml_internal.pml_stored_rows() RETURNS bigint
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  here_org text := pml_internal.pml_org();
  here_project text := pml_internal.pml_project();
BEGIN
  PERFORM pml_internal.pml_check_may_act(here_org, here_project);
  RETURN pml_internal.pml_rows_of(here_org, here_project);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_stored_rows() IS
  'How many capabilities, tools and calls the current scope has stored, whoever made them';

CREATE FUNCTION pml_internal.pml_rows_of(org text, project text) RETURNS bigint
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT (SELECT count(*) FROM pml.capability_records r WHERE r.org = pml_rows_of.org AND r.project = pml_rows_of.project)
       + (SELECT count(*) FROM pml.tool_schema t WHERE t.org = pml_rows_of.org AND t.project = pml_rows_of.project)
       + (SELECT count(*) FROM pml.tool_usage u WHERE u.org = pml_rows_of.org AND u.project = pml_rows_of.project)
$$;
COMMENT ON FUNCTION pml_internal.pml_rows_of(text, text) IS 'The rows that a scope has stored';
