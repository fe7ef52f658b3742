-- Listing with filters.

CREATE FUNCTION pml_internal.pml_list(
    pattern text DEFAULT NULL, namespace text DEFAULT NULL, named_only boolean DEFAULT false,
    unnamed_only boolean DEFAULT false, created_by text DEFAULT NULL, tags text[] DEFAULT NULL,
    visibility text DEFAULT NULL, sort_by text DEFAULT 'usage', "limit" bigint DEFAULT NULL, "offset" bigint DEFAULT 0,
    version_tag text DEFAULT NULL, record_type text DEFAULT 'capability')
  RETURNS TABLE (fqdn text, name text, description text, namespace text, visibility text, routing text,
                 version integer, version_tag text, tags text[], usage_count bigint, success_rate numeric,
                 created_by text, created_at timestamptz, parameters jsonb)
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  WITH here AS MATERIALIZED (
    SELECT pml_internal.pml_org() AS org, pml_internal.pml_project() AS project,
           pml_internal.pml_glob_to_like(pml_list.pattern) AS name_pattern,
           pml_internal.pml_glob_to_like(pml_list.namespace) AS namespace_pattern,
           pml_internal.pml_glob_to_like(pml_list.version_tag) AS tag_pattern,
           pml_internal.pml_glob_to_like(pml_list.created_by) AS creator_pattern
    WHERE pml_internal.pml_check_list(
            pml_list.named_only, pml_list.unnamed_only, pml_list.visibility, pml_list.sort_by, pml_list.record_type))
  SELECT r.id, pml_internal.pml_name_here(r.org, r.project, r.display_name), r.description,
         pml_internal.pml_display_namespace(r.display_name, r.namespace), r.visibility, pml_internal.pml_current_routing(r),
         r.version, r.version_tag, r.tags, used.uses,
         pml_internal.pml_success_rate(used.successes, used.uses), r.created_by, r.created_at, r.parameters_schema
  FROM here
  -- org and public records are listed from all scopes where they are visible.
  JOIN pml.capability_records r ON CASE pml_list.visibility
         WHEN 'public' THEN true
         WHEN 'org' THEN r.org = here.org
         ELSE r.org = here.org AND r.project = here.project END
  CROSS JOIN LATERAL pml_internal.pml_used(r.id, r.usage_count, r.success_count, r.total_latency_ms) AS used
  WHERE r.deleted_at IS NULL AND (pml_list.record_type IS NULL OR r.record_type = pml_list.record_type)
    AND (pml_list.visibility IS NULL OR r.visibility = pml_list.visibility)
    AND (here.name_pattern IS NULL OR r.display_name LIKE here.name_pattern)
    AND (here.namespace_pattern IS NULL
         OR pml_internal.pml_display_namespace(r.display_name, r.namespace) LIKE here.namespace_pattern)
    AND (here.tag_pattern IS NULL OR r.version_tag LIKE here.tag_pattern)
    AND NOT (coalesce(pml_list.named_only, false) AND pml_internal.pml_is_unnamed(r.display_name))
    AND NOT (coalesce(pml_list.unnamed_only, false) AND NOT pml_internal.pml_is_unnamed(r.display_name))
    AND (here.creator_pattern IS NULL OR r.created_by LIKE here.creator_pattern)
    AND (pml_list.tags IS NULL OR r.tags @> pml_list.tags)
  ORDER BY CASE WHEN pml_list.sort_by = 'usage' THEN used.uses END DESC,
           CASE WHEN pml_list.sort_by = 'created' THEN r.created_at END DESC,
           r.display_name, r.id
  LIMIT pml_internal.pml_check_count('limit', pml_list."limit")
  OFFSET pml_internal.pml_check_count('offset', coalesce(pml_list."offset", 0))
$$;
COMMENT ON FUNCTION pml_internal.pml_list(
    text, text, boolean, boolean, text, text[], text, text, bigint, bigint, text, text) IS
  'The capabilities (record_type => mcp-server: servers, NULL: both) of the current scope; with visibility => org or public, those of all scopes seen from here';

CREATE FUNCTION pml_internal.pml_check_list(
    named_only boolean, unnamed_only boolean, visibility text, sort_by text, record_type text) RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF named_only AND unnamed_only THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'named_only and unnamed_only exclude each other', HINT = 'Set one of them.';
  END IF;
  PERFORM pml_internal.pml_check_choice('sort_by', coalesce(sort_by, ''), '{usage,name,created}'),
          pml_internal.pml_check_record_type(record_type), pml_internal.pml_check_visibility(visibility);
  PERFORM pml_internal.pml_check_may_act(pml_internal.pml_org(), pml_internal.pml_project());
  RETURN true;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_list(boolean, boolean, text, text, text) IS
  'Validates the arguments of pml_list; true or an error';
