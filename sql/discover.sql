-- Search: capabilities and tools for an intent in words.

CREATE FUNCTION pml_internal.pml_check_type(type text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pml_internal.pml_check_choice('type', type, '{tool,capability,all}');
  PERFORM pml_internal.pml_check_may_act(pml_internal.pml_org(), pml_internal.pml_project());
  RETURN coalesce(nullif(type, 'all'), '');
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_type(text) IS 'The type to search for, validated';

CREATE FUNCTION pml_internal.pml_search(
    intent text, type text, servers text[], min_score real, "limit" bigint, "offset" bigint)
  RETURNS TABLE (type text, name text, score real, description text, tool_name text, input_schema jsonb,
                 output_schema jsonb, server_id text, usage_count bigint, success_rate numeric, source text, fqdn text)
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  WITH asked AS MATERIALIZED (
    SELECT pml_internal.pml_org() AS org, pml_internal.pml_project() AS project, w.queries,
           (SELECT string_agg(q::text, ' | ')::tsquery FROM unnest(w.queries) AS q) AS query,
           pml_internal.pml_check_type(pml_search.type) AS kind
    FROM (SELECT pml_internal.pml_intent_queries(pml_search.intent) AS queries) AS w),
  found AS (
    SELECT 'capability' AS type, r.id AS key, pml_internal.pml_search_score(r.search, asked.queries, asked.query) AS score,
           used.uses AS usage_count, r.display_name AS name
    FROM asked JOIN pml.capability_records r ON r.org = asked.org AND r.project = asked.project
    CROSS JOIN LATERAL pml_internal.pml_used(r.id, r.usage_count, r.success_count, r.total_latency_ms) AS used
    WHERE asked.kind <> 'tool' AND r.record_type = 'capability' AND r.deleted_at IS NULL AND r.search @@ asked.query
    UNION ALL
    SELECT 'tool', t.tool_id, pml_internal.pml_search_score(t.search, asked.queries, asked.query), 0, t.tool_id
    FROM asked JOIN pml.tool_schema t ON t.org = asked.org AND t.project = asked.project
    WHERE asked.kind <> 'capability' AND (pml_search.servers IS NULL OR t.server_id = ANY (pml_search.servers)) AND t.search @@ asked.query),
  page AS MATERIALIZED (
    SELECT * FROM found f WHERE f.score >= coalesce(pml_search.min_score, 0)
    ORDER BY f.score DESC, f.usage_count DESC, f.name
    LIMIT least(greatest(coalesce(pml_search."limit", 10), 0), 200) OFFSET greatest(coalesce(pml_search."offset", 0), 0))
  SELECT p.type, p.name, p.score, coalesce(r.description, t.description),
         coalesce(t.tool_name, pml_internal.pml_tool_name_of(r.id)),
         pml_internal.pml_object_schema(coalesce(r.parameters_schema, t.input_schema)),
         coalesce(r.output_schema, t.output_schema), coalesce(t.server_id, 'pml-capabilities'), used.uses,
         pml_internal.pml_success_rate(used.successes, used.uses),
         left(pml_internal.pml_display_code(r.code_snippet), 240), r.id
  FROM page p
  LEFT JOIN pml.capability_records r ON p.type = 'capability' AND r.id = p.key
  LEFT JOIN LATERAL pml_internal.pml_used(r.id, r.usage_count, r.success_count, r.total_latency_ms) AS used ON r.id IS NOT NULL
  LEFT JOIN pml.tool_schema t ON p.type = 'tool' AND t.org = pml_internal.pml_org()
                             AND t.project = pml_internal.pml_project() AND t.tool_id = p.key
  ORDER BY p.score DESC, p.usage_count DESC, p.name
$$;
COMMENT ON FUNCTION pml_internal.pml_search(text, text, text[], real, bigint, bigint) IS
  'pml_discover among the tools of these servers (NULL: of all)';

CREATE FUNCTION pml_internal.pml_discover(
    intent text, type text DEFAULT NULL, min_score real DEFAULT NULL, "limit" integer DEFAULT 10,
    "offset" integer DEFAULT 0)
  RETURNS TABLE (type text, name text, score real, description text, tool_name text, input_schema jsonb,
                 output_schema jsonb, server_id text, usage_count bigint, success_rate numeric, source text, fqdn text)
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT * FROM pml_internal.pml_search(pml_discover.intent, pml_discover.type, NULL, pml_discover.min_score,
                                       pml_discover."limit", pml_discover."offset")
$$;
COMMENT ON FUNCTION pml_internal.pml_discover(text, text, real, integer, integer) IS
  'The capabilities and tools of the current scope that fit an intent in words, best first';
