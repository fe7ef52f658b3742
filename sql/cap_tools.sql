-- The cap_ tools, with which agents manage capabilities. They take and return names; FQDNs appear only under _meta.

CREATE FUNCTION pml_internal.pml_cap_named(fqdn text) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object(
           'name', pml_internal.pml_name_here(r.org, r.project, r.display_name), 'description', r.description,
           'tags', r.tags, 'visibility', r.visibility, 'version', r.version, 'version_tag', r.version_tag,
           'tool', pml_internal.pml_tool_name_of(r.id), '_meta', jsonb_build_object('fqdn', r.id))
  FROM pml.capability_records r WHERE r.id = pml_cap_named.fqdn
$$;
COMMENT ON FUNCTION pml_internal.pml_cap_named(text) IS 'A capability as returned by the cap_ tools that make or change one';

CREATE FUNCTION pml_internal.pml_cap_lookup(spec text) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object(
           'name', pml_internal.pml_name_here(r.org, r.project, l.display_name), 'display_name', l.display_name,
           'type', l.type, 'version', l.version, 'version_tag', l.version_tag, 'description', l.description,
           'visibility', l.visibility, 'routing', l.routing, 'code_url', l.code_url, 'usage_count', l.usage_count,
           'success_rate', l.success_rate, 'via_alias', l.via_alias, 'parameters', v.parameters_schema,
           'tool', pml_internal.pml_tool_name_of(l.fqdn), '_meta', jsonb_build_object('fqdn', l.fqdn))
         || pml_internal.pml_shown_clash(r.org, r.project, r.display_name)
  FROM pml_internal.pml_lookup(pml_cap_lookup.spec) AS l
  JOIN pml.capability_records r ON r.id = l.fqdn
  JOIN pml.capability_versions v ON v.capability_fqdn = l.fqdn AND v.version = l.version
$$;
COMMENT ON FUNCTION pml_internal.pml_cap_lookup(text) IS 'The tool cap_lookup';

CREATE FUNCTION pml_internal.pml_cap_whois(spec text) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  -- FQDNs move to _meta or become names; internals are dropped.
  SELECT (w.who - ARRAY['id', 'fqdn', 'hash', 'code_hash', 'parent_id', 'forked_from', 'structure', 'executable', 'action',
                        'capabilities_used', 'dependencies', 'dependents', 'record_type', 'namespace'])
         || jsonb_build_object(
              'name', pml_internal.pml_name_here(w.who ->> 'org', w.who ->> 'project', w.who ->> 'display_name'),
              'tool', pml_internal.pml_tool_name_of(w.who ->> 'fqdn'),
              'namespace', pml_internal.pml_display_namespace(w.who ->> 'display_name', w.who ->> 'namespace'),
              'forked_from', pml_internal.pml_names_here(ARRAY[w.who ->> 'forked_from']) -> 0,
              'dependencies', pml_internal.pml_names_here(ARRAY(SELECT jsonb_array_elements_text(w.who -> 'dependencies'))),
              'dependents', pml_internal.pml_names_here(ARRAY(SELECT jsonb_array_elements_text(w.who -> 'dependents'))),
              '_meta', jsonb_build_object('fqdn', w.who -> 'fqdn', 'hash', w.who -> 'code_hash',
                                          'forkedFrom', w.who -> 'forked_from'))
  FROM (SELECT pml_internal.pml_whois(pml_cap_whois.spec) AS who OFFSET 0) AS w
$$;
COMMENT ON FUNCTION pml_internal.pml_cap_whois(text) IS 'The tool cap_whois';

CREATE FUNCTION pml_internal.pml_cap_list(arguments jsonb) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  WITH page AS MATERIALIZED (
    SELECT pml_cap_list.arguments AS given,
           least(greatest(coalesce((pml_cap_list.arguments ->> 'limit')::bigint, 50), 0), 500) AS size,
           greatest(coalesce((pml_cap_list.arguments ->> 'offset')::bigint, 0), 0) AS start),
  found AS MATERIALIZED (
    SELECT l.*, row_number() OVER () AS place
    FROM page, pml_internal.pml_list(
      page.given ->> 'pattern', page.given ->> 'namespace', (page.given ->> 'named_only')::boolean,
      (page.given ->> 'unnamed_only')::boolean, page.given ->> 'created_by',
      CASE WHEN page.given ? 'tags' THEN ARRAY(SELECT jsonb_array_elements_text(page.given -> 'tags')) END,
      page.given ->> 'visibility', coalesce(page.given ->> 'sort_by', 'usage'), page.size + 1, page.start,
      page.given ->> 'version_tag', coalesce(page.given ->> 'record_type', 'capability')) AS l)
  SELECT jsonb_build_object(
    'capabilities', coalesce(jsonb_agg(jsonb_build_object(
        'name', f.name, 'description', f.description, 'namespace', f.namespace, 'visibility', f.visibility,
        'routing', f.routing, 'version', f.version, 'version_tag', f.version_tag, 'tags', f.tags,
        'usage_count', f.usage_count, 'success_rate', f.success_rate, 'created_by', f.created_by,
        'created_at', f.created_at, 'parameters', f.parameters, 'tool', pml_internal.pml_tool_name_of(f.fqdn))
        || pml_internal.pml_shown_clash(pml_internal.pml_org(), pml_internal.pml_project(), f.name)
      ORDER BY f.place) FILTER (WHERE f.place <= page.size), '[]'),
    'next_offset', CASE WHEN page.size > 0 AND count(f.place) > page.size THEN page.start + page.size END,
    '_meta', jsonb_build_object('fqdns', coalesce(jsonb_object_agg(f.name, f.fqdn) FILTER (WHERE f.place <= page.size), '{}')))
  FROM page LEFT JOIN found f ON true
  GROUP BY page.size, page.start
$$;
COMMENT ON FUNCTION pml_internal.pml_cap_list(jsonb) IS 'The tool cap_list';

CREATE FUNCTION pml_internal.pml_cap_history(spec text, "limit" bigint, "offset" bigint) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object(
    'name', (SELECT pml_internal.pml_name_here(r.org, r.project, r.display_name) FROM pml.capability_records r
             WHERE r.id = pml_internal.pml_resolve(pml_cap_history.spec)),
    'versions', (SELECT coalesce(jsonb_agg(to_jsonb(h) ORDER BY h.version DESC), '[]')
                 FROM (SELECT * FROM pml_internal.pml_history(pml_cap_history.spec)
                       LIMIT least(greatest(coalesce(pml_cap_history."limit", 50), 0), 500)
                       OFFSET greatest(coalesce(pml_cap_history."offset", 0), 0)) AS h))
$$;
COMMENT ON FUNCTION pml_internal.pml_cap_history(text, bigint, bigint) IS 'The tool cap_history';

-- Resolving once and passing the FQDN on warns of an alias only once.
CREATE FUNCTION pml_internal.pml_as_fqdn(spec text) RETURNS text
  LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
  RETURN pg_catalog.concat_ws('@', (pml_internal.pml_locate(spec)).fqdn, nullif(pg_catalog.split_part(spec, '@', 2), ''));
COMMENT ON FUNCTION pml_internal.pml_as_fqdn(text) IS 'The spec with its name replaced by the FQDN; the version stays';

CREATE FUNCTION pml_internal.pml_cap_answer(action text, given jsonb) RETURNS jsonb
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  source text;
  target text;
  former text;
BEGIN
  CASE action
    WHEN 'lookup' THEN RETURN pml_internal.pml_cap_lookup(given ->> 'name');
    WHEN 'list' THEN RETURN pml_internal.pml_cap_list(given);
    WHEN 'whois' THEN RETURN pml_internal.pml_cap_whois(given ->> 'name');
    WHEN 'history' THEN
      source := pml_internal.pml_as_fqdn(given ->> 'name');
      RETURN pml_internal.pml_cap_history(source, (given ->> 'limit')::bigint, (given ->> 'offset')::bigint);
    WHEN 'rename' THEN
      target := (pml_internal.pml_locate(given ->> 'name')).fqdn;
      former := pml_internal.pml_rename_record(target, given ->> 'name', given ->> 'new_name', given ->> 'description',
                  CASE WHEN given ? 'tags' THEN ARRAY(SELECT jsonb_array_elements_text(given -> 'tags')) END,
                  given ->> 'visibility');
      RETURN (SELECT n.named || CASE WHEN n.named ->> 'name' = former THEN '{}'
                                     ELSE jsonb_build_object('previous_name', former) END
              FROM (SELECT pml_internal.pml_cap_named(target) AS named) AS n);
    WHEN 'fork' THEN
      source := pml_internal.pml_as_fqdn(given ->> 'source');
      target := pml_internal.pml_fork(source, given ->> 'name');
      RETURN pml_internal.pml_cap_named(target) || jsonb_build_object(
        'forked_from', pml_internal.pml_names_here(ARRAY[split_part(source, '@', 1)]) -> 0);
    WHEN 'merge' THEN
      target := pml_internal.pml_merge(ARRAY(SELECT jsonb_array_elements_text(given -> 'sources')), given ->> 'name',
                  given ->> 'code', given ->> 'description');
      RETURN pml_internal.pml_cap_named(target);
  END CASE;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_cap_answer(text, jsonb) IS 'Calls a cap_ tool with validated arguments';

CREATE FUNCTION pml_internal.pml_cap(tool text, args jsonb DEFAULT NULL) RETURNS jsonb
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  action text := regexp_replace(coalesce(tool, ''), '^cap[_:]', '');
  given jsonb := pml_internal.pml_check_arguments('cap_' || action, args);
  old_names text;
BEGIN
  -- Before anything changes: a rename may turn the alias into the name.
  SELECT string_agg(pml_internal.pml_alias_warning(spec), '. ') INTO old_names
  FROM jsonb_array_elements_text(CASE action WHEN 'merge' THEN given -> 'sources' WHEN 'fork' THEN jsonb_build_array(given -> 'source')
                                             ELSE jsonb_build_array(given -> 'name') END) AS spec;
  RETURN pml_internal.pml_cap_answer(action, given)
    || CASE WHEN old_names IS NULL THEN '{}' ELSE jsonb_build_object('warning', old_names) END;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_cap(text, jsonb) IS
  'Runs one of the tools cap_lookup, cap_list, cap_rename, cap_whois, cap_history, cap_fork, cap_merge';
