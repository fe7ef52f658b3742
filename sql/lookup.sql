-- Lookup of one capability.

-- OFFSET 0 keeps pml_locate to one call, however often its result is used: each call warns of an alias.
CREATE FUNCTION pml_internal.pml_lookup(spec text)
  RETURNS TABLE (fqdn text, display_name text, type text, version integer, version_tag text, description text,
                 visibility text, routing text, code_url text, usage_count bigint, success_rate numeric, via_alias text)
  LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.id, r.display_name, r.record_type, v.version, v.version_tag, r.description,
         r.visibility, pml_internal.pml_current_routing(r), v.code_url, used.uses,
         pml_internal.pml_success_rate(used.successes, used.uses), (found.at).alias
  FROM (SELECT pml_internal.pml_locate(pml_lookup.spec) AS at OFFSET 0) AS found
  JOIN pml.capability_records r ON r.id = (found.at).fqdn
  CROSS JOIN LATERAL pml_internal.pml_used(r.id, r.usage_count, r.success_count, r.total_latency_ms) AS used
  JOIN pml.capability_versions v ON v.capability_fqdn = r.id AND v.version = (found.at).version
$$;
COMMENT ON FUNCTION pml_internal.pml_lookup(text) IS 'What a caller needs to know about a capability or server';

CREATE FUNCTION pml_internal.pml_code(spec text) RETURNS text
  LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT pml_internal.pml_display_code(v.code_snippet)
  FROM (SELECT pml_internal.pml_locate(pml_code.spec) AS at OFFSET 0) AS found
  JOIN pml.capability_versions v ON v.capability_fqdn = (found.at).fqdn AND v.version = (found.at).version
$$;
COMMENT ON FUNCTION pml_internal.pml_code(text) IS
  'The code of that version, with today''s names for the capabilities it calls; NULL for a server';

CREATE FUNCTION pml_internal.pml_whois(spec text) RETURNS jsonb
  LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT to_jsonb(r) - 'search'
      -- Hidden if the reader can't see the source.
      || CASE WHEN EXISTS (SELECT FROM pml.capability_records source WHERE source.id = r.forked_from) THEN '{}'::jsonb
              ELSE '{"forked_from": null, "parent_id": null}' END
      || jsonb_build_object(
        'fqdn', r.id,
        'type', r.record_type,
        'via_alias', (found.at).alias,
        'clashes_with', CASE WHEN r.record_type = 'capability'
                             THEN pml_internal.pml_tool_called(r.org, r.project, r.display_name) END,
        'version', v.version,
        'version_tag', v.version_tag,
        'code_snippet', pml_internal.pml_display_code(v.code_snippet),
        'source', v.source || CASE WHEN v.source ->> 'type' = 'code'
                                   THEN jsonb_build_object('code', pml_internal.pml_display_code(v.code_snippet)) ELSE '{}' END,
        'code_hash', v.code_hash,
        'code_url', v.code_url,
        'parameters_schema', v.parameters_schema,
        'output_schema', v.output_schema,
        'executable', v.executable,
        'routing', pml_internal.pml_current_routing(r),
        'structure', CASE WHEN v.version = r.version THEN pml_internal.pml_current_structure(r) ELSE v.structure END,
        'tools_used', CASE WHEN v.version = r.version THEN r.tools_used ELSE v.tools_used END,
        'capabilities_used', v.capabilities_used,
        'unresolved', v.unresolved,
        'change_summary', v.change_summary,
        'usage_count', used.uses,
        'success_count', used.successes,
        'total_latency_ms', used.latency_ms,
        'success_rate', pml_internal.pml_success_rate(used.successes, used.uses),
        'avg_latency_ms', round(used.latency_ms::numeric / nullif(used.uses, 0), 2),
        'versions', (SELECT count(*) FROM pml.capability_versions c WHERE c.capability_fqdn = r.id),
        'aliases', (SELECT coalesce(jsonb_agg(a.alias ORDER BY a.created_at, a.alias), '[]')
                    FROM pml.capability_aliases a WHERE a.target_fqdn = r.id),
        'dependencies', (SELECT coalesce(jsonb_agg(DISTINCT d.to_fqdn), '[]')
                         FROM pml.capability_dependencies d WHERE d.from_fqdn = r.id),
        'dependents', (SELECT coalesce(jsonb_agg(DISTINCT d.from_fqdn), '[]')
                       FROM pml.capability_dependencies d WHERE d.to_fqdn = r.id),
        'renames', (SELECT coalesce(jsonb_agg(jsonb_build_object('old_name', h.old_name, 'new_name', h.new_name,
                                                                 'renamed_at', h.renamed_at, 'renamed_by', h.renamed_by)
                                              ORDER BY h.id), '[]')
                    FROM pml.capability_rename_history h WHERE h.capability_id = r.id))
  FROM (SELECT pml_internal.pml_locate(pml_whois.spec) AS at OFFSET 0) AS found
  JOIN pml.capability_records r ON r.id = (found.at).fqdn
  CROSS JOIN LATERAL pml_internal.pml_used(r.id, r.usage_count, r.success_count, r.total_latency_ms) AS used
  JOIN pml.capability_versions v ON v.capability_fqdn = r.id AND v.version = (found.at).version
$$;
COMMENT ON FUNCTION pml_internal.pml_whois(text) IS
  'The whole record as JSON, with aliases, dependencies, provenance and statistics';

CREATE FUNCTION pml_internal.pml_dependents(spec text) RETURNS TABLE (fqdn text, display_name text, depth integer)
  LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  frontier text[] := ARRAY[(pml_internal.pml_locate(spec)).fqdn];
  reached text[] := frontier;
  distance integer := 0;
BEGIN
  -- Breadth first: the number of paths may be exponential, that of capabilities isn't.
  LOOP
    distance := distance + 1;
    SELECT array_agg(DISTINCT d.from_fqdn::text) INTO frontier
    FROM pml.capability_dependencies d JOIN pml.capability_records r ON r.id = d.from_fqdn AND r.deleted_at IS NULL
    WHERE d.to_fqdn = ANY (frontier) AND d.from_fqdn <> ALL (reached);
    EXIT WHEN frontier IS NULL;
    reached := reached || frontier;
    RETURN QUERY SELECT r.id, r.display_name, distance FROM pml.capability_records r
                 WHERE r.id = ANY (frontier) ORDER BY r.display_name;
  END LOOP;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_dependents(text) IS 'The capabilities that call this one, directly or through others';
