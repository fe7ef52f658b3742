-- The versions of a capability, with diffs.

CREATE FUNCTION pml_internal.pml_history(spec text)
  RETURNS TABLE (version integer, version_tag text, updated_by text, updated_at timestamptz, change_summary text, diff text)
  LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  WITH steps AS (
    SELECT v.*, coalesce(lag(shown.code) OVER past, '') AS before, coalesce(shown.code, '') AS after,
           coalesce('version ' || lag(v.version) OVER past, 'nothing') AS before_label
    FROM (SELECT pml_internal.pml_locate(pml_history.spec) AS at OFFSET 0) AS found
    JOIN pml.capability_versions v ON v.capability_fqdn = (found.at).fqdn AND v.version <= (found.at).version
    CROSS JOIN LATERAL (SELECT coalesce(pml_internal.pml_display_code(v.code_snippet), v.code_url) AS code) AS shown
    WINDOW past AS (ORDER BY v.version))
  SELECT s.version, s.version_tag, s.updated_by, s.updated_at, s.change_summary,
         pml_internal.pml_diff(s.before, s.after, s.before_label, 'version ' || s.version)
  FROM steps s
  ORDER BY s.version DESC
$$;
COMMENT ON FUNCTION pml_internal.pml_history(text) IS
  'All versions (up to the given one), newest first, each with its unified diff from the one before';
