-- Listing with filters.

CREATE TYPE pml_internal.pml_listed AS (
  fqdn text, name text, description text, namespace text, visibility text, routing text, version integer, version_tag text,
  tags text[], usage_count bigint, success_rate numeric, created_by text, created_at timestamptz, parameters jsonb);
COMMENT ON TYPE pml_internal.pml_listed IS 'A row of pml_list';

-- Without settings, so that it is inlined.
CREATE FUNCTION pml_internal.pml_listed_row(r pml.capability_records) RETURNS SETOF pml_internal.pml_listed
  LANGUAGE sql STABLE PARALLEL RESTRICTED ROWS 1
BEGIN ATOMIC
  SELECT (r).id, pml_internal.pml_name_here((r).org, (r).project, (r).display_name), (r).description,
         pml_internal.pml_display_namespace((r).display_name, (r).namespace), (r).visibility, pml_internal.pml_current_routing(r),
         (r).version, (r).version_tag, (r).tags, used.uses, pml_internal.pml_success_rate(used.successes, used.uses),
         (r).created_by, (r).created_at, (r).parameters_schema
  FROM pml_internal.pml_used((r).id, (r).usage_count, (r).success_count, (r).total_latency_ms) AS used;
END;
COMMENT ON FUNCTION pml_internal.pml_listed_row(pml.capability_records) IS 'A record as pml_list shows it';

CREATE FUNCTION pml_internal.pml_list_whole(asked pml_internal.pml_listing, "limit" bigint, "offset" bigint)
  RETURNS SETOF pml_internal.pml_listed
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT l.*
  FROM (SELECT (pml_list_whole.asked).*, pml_list_whole.asked AS given,
               pml_internal.pml_lists_of(pml_list_whole.asked) AS lists OFFSET 0) AS here
  JOIN pml.capability_records r ON CASE here.visibility WHEN 'public' THEN true WHEN 'org' THEN r.org = here.org
                                        ELSE r.org = here.org AND r.project = here.project END
  CROSS JOIN LATERAL pml_internal.pml_listed_row(r) AS l
  WHERE r.listed_in = ANY (here.lists) AND pml_internal.pml_is_asked(r, here.given)
  ORDER BY CASE WHEN here.sort_by = 'usage' THEN l.usage_count END DESC,
           CASE WHEN here.sort_by = 'created' THEN r.created_at END DESC, r.display_name, r.id
  LIMIT pml_list_whole."limit" OFFSET pml_list_whole."offset"
$$;
COMMENT ON FUNCTION pml_internal.pml_list_whole(pml_internal.pml_listing, bigint, bigint) IS
  'A listing without a limit, or of a page far down: reads all that is listed';

CREATE FUNCTION pml_internal.pml_list_page(asked pml_internal.pml_listing, "limit" bigint, "offset" bigint)
  RETURNS SETOF pml_internal.pml_listed
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT l.*
  FROM (SELECT DISTINCT first.fqdn FROM pml_internal.pml_first_listed(pml_list_page.asked) AS first (fqdn)) AS first
  -- LIMIT forces an index lookup for each.
  CROSS JOIN LATERAL (SELECT r FROM pml.capability_records r WHERE r.id = first.fqdn LIMIT 1) AS stored
  CROSS JOIN LATERAL pml_internal.pml_listed_row(stored.r) AS l
  WHERE pml_internal.pml_is_asked(stored.r, pml_list_page.asked)
  ORDER BY CASE WHEN (pml_list_page.asked).sort_by = 'usage' THEN l.usage_count END DESC,
           CASE WHEN (pml_list_page.asked).sort_by = 'created' THEN l.created_at END DESC, (stored.r).display_name, l.fqdn
  LIMIT pml_list_page."limit" OFFSET pml_list_page."offset"
$$;
COMMENT ON FUNCTION pml_internal.pml_list_page(pml_internal.pml_listing, bigint, bigint) IS
  'A page of a listing: reads about as much as it shows';

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
  WITH asked AS MATERIALIZED (
    SELECT pml_internal.pml_org() AS org, pml_internal.pml_project() AS project, pml_list.visibility, pml_list.record_type,
           pml_list.named_only, pml_list.unnamed_only, pml_internal.pml_glob_to_like(pml_list.pattern) AS name_pattern,
           -- What precedes the first wildcard; all that a valid name can contain is lower than ~.
           nullif(substring(pml_list.pattern FROM '^[^*?]+'), '') AS name_prefix,
           pml_internal.pml_glob_to_like(pml_list.namespace) AS namespace_pattern,
           pml_internal.pml_glob_to_like(pml_list.version_tag) AS tag_pattern,
           pml_internal.pml_glob_to_like(pml_list.created_by) AS creator_pattern, pml_list.tags, pml_list.sort_by,
           CASE WHEN pml_list."limit" <= 10000 AND coalesce(pml_list."offset", 0) <= 10000
                THEN pml_list."limit" + coalesce(pml_list."offset", 0) END AS first
    WHERE pml_internal.pml_check_list(
            pml_list.named_only, pml_list.unnamed_only, pml_list.visibility, pml_list.sort_by, pml_list.record_type,
            pml_list."limit", pml_list."offset"))
  SELECT l.*
  FROM asked
  CROSS JOIN LATERAL (
    SELECT page.*
    FROM pml_internal.pml_list_page(asked::pml_internal.pml_listing, pml_list."limit", pml_list."offset") AS page
    WHERE asked.first IS NOT NULL
    UNION ALL
    SELECT whole.*
    FROM pml_internal.pml_list_whole(asked::pml_internal.pml_listing, pml_list."limit", pml_list."offset") AS whole
    WHERE asked.first IS NULL) AS l
$$;
COMMENT ON FUNCTION pml_internal.pml_list(
    text, text, boolean, boolean, text, text[], text, text, bigint, bigint, text, text) IS
  'The capabilities (record_type => mcp-server: servers, NULL: both) of the current scope; with visibility => org or public, those of all scopes seen from here';

CREATE FUNCTION pml_internal.pml_check_list(
    named_only boolean, unnamed_only boolean, visibility text, sort_by text, record_type text, most bigint, skipped bigint)
  RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF named_only AND unnamed_only THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'named_only and unnamed_only exclude each other', HINT = 'Set one of them.';
  END IF;
  PERFORM pml_internal.pml_check_choice('sort_by', coalesce(sort_by, ''), '{usage,name,created}'),
          pml_internal.pml_check_record_type(record_type), pml_internal.pml_check_visibility(visibility),
          pml_internal.pml_check_count('limit', most), pml_internal.pml_check_count('offset', skipped);
  PERFORM pml_internal.pml_check_may_act(pml_internal.pml_org(), pml_internal.pml_project());
  RETURN true;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_list(boolean, boolean, text, text, text, bigint, bigint) IS
  'Validates the arguments of pml_list; true or an error';
