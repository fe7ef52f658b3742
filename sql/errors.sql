-- Errors that several functions raise, and the excerpt of user input that a message may quote.

CREATE FUNCTION pml_internal.pml_excerpt(given text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pg_catalog.regexp_replace(pg_catalog.left(given, 100), '[[:cntrl:]]', '?', 'g');
COMMENT ON FUNCTION pml_internal.pml_excerpt(text) IS 'User input, truncated and printable, for messages';

-- pml_act_as, with which a proxy acts for an agent, sets this application_name.
CREATE FUNCTION pml_internal.pml_hint(in_sql text, over_mcp text) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN CASE WHEN pg_catalog.current_setting('application_name') LIKE 'pml/%' THEN over_mcp ELSE in_sql END;
COMMENT ON FUNCTION pml_internal.pml_hint(text, text) IS
  'What to do in the caller''s terms: functions and settings for SQL, tools for an agent whose request a proxy passes on';

-- A trigger function runs on its own table only. On an attacker's table, assigning a column could run the code of a
-- domain's CHECK with the rights of the function's owner.
CREATE FUNCTION pml_internal.pml_refuse_table(relation oid) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'PM006',
    MESSAGE = format('This trigger function is not for table %s', relation::regclass),
    HINT = 'The triggers of PML belong to the tables of schema pml.';
END
$$;
COMMENT ON FUNCTION pml_internal.pml_refuse_table(oid) IS 'The error of a trigger function that is attached to a foreign table';

CREATE FUNCTION pml_internal.pml_check_changed(changed boolean, spec text, fqdn text) RETURNS void
  LANGUAGE plpgsql STABLE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT changed THEN
    RAISE EXCEPTION USING ERRCODE = 'PM006',
      MESSAGE = format('Not permitted to change capability "%s"', spec),
      DETAIL = format('It belongs to scope %s.%s.', split_part(fqdn, '.', 1), split_part(fqdn, '.', 2)),
      HINT = pml_internal.pml_hint('Copy it into your scope with pml_fork, or ask for a grant on its scope (pml_grant).',
                                   'Copy it into your scope with cap_fork, and change the copy.');
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_changed(boolean, text, text) IS
  'An error if an UPDATE matched no row, because the current user may not act in the record''s scope';

CREATE FUNCTION pml_internal.pml_name_taken(
    org text, project text, name text, hint text DEFAULT 'Use another name.', detail text DEFAULT NULL) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  message text := format('Capability name ''%s'' already exists in scope %s.%s', name, org, project);
BEGIN
  IF detail IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'PM003', MESSAGE = message, HINT = hint;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'PM003', MESSAGE = message, DETAIL = detail, HINT = hint;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_name_taken(text, text, text, text, text) IS 'The error for a name that another capability has';

CREATE FUNCTION pml_internal.pml_code_taken(org text, project text, existing_name text, name text) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'PM003',
    MESSAGE = format('This code is already capability "%s" in scope %s.%s', existing_name, org, project),
    HINT = pml_internal.pml_hint(
      format('Call it by that name, rename it with pml_rename, or copy it: SELECT pml_fork(''%s'', ''%s'').',
             existing_name, coalesce(name, 'another:name')),
      'Call it by that name, rename it with cap_rename, or copy it with cap_fork.');
END
$$;
COMMENT ON FUNCTION pml_internal.pml_code_taken(text, text, text, text) IS 'The error for code that another capability has';

CREATE FUNCTION pml_internal.pml_tool_not_found(tool_name text, hint text DEFAULT NULL) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  named text[] := regexp_match(tool_name, '^mcp__(.+?)__(.+)$');
BEGIN
  -- A name of this form may have been that of a capability.
  RAISE EXCEPTION USING ERRCODE = CASE WHEN named IS NULL THEN 'PM008' ELSE 'PM001' END,
    MESSAGE = CASE WHEN named IS NULL THEN format('Tool not found: %s', pml_internal.pml_excerpt(tool_name))
                   ELSE format('Capability not found: %s', pml_internal.pml_excerpt(named[1] || ':' || named[2])) END,
    HINT = coalesce(hint, (SELECT format('Did you mean "%s"?',
                                    pml_internal.pml_nearest(pml_tool_not_found.tool_name, array_agg(n.tool_name::text)))
                     FROM (SELECT t.tool_name FROM pml.tool_names t
                           WHERE t.org = pml_internal.pml_org() AND t.project = pml_internal.pml_project() LIMIT 1000) AS n
                     HAVING pml_internal.pml_nearest(pml_tool_not_found.tool_name, array_agg(n.tool_name::text)) IS NOT NULL),
                    'tools/list shows what there is.');
END
$$;
COMMENT ON FUNCTION pml_internal.pml_tool_not_found(text, text) IS 'The error for an unknown wire name';

-- pml_resolve raises these errors in C, for SQL and for agents alike.
CREATE FUNCTION pml_internal.pml_refuse_spec(sqlstate text, message text, detail text, hint text) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  wanted text := substring(message FROM '^Capability not found: ([^@]+)');
  tool record;
BEGIN
  SELECT t.tool_id, t.server_id, t.name, t.tool_name INTO tool FROM pml.tool_schema t
  WHERE t.org = pml_internal.pml_org() AND t.project = pml_internal.pml_project()
    AND t.tool_id = pml_internal.pml_tool_named(t.org, t.project, wanted);
  IF FOUND THEN
    detail := format('It is a tool of the server "%s".', tool.server_id);
    hint := format('Call the tool %s, or in code: await mcp.%s.%s({...}).', tool.tool_name, tool.server_id, tool.name);
  ELSIF starts_with(hint, 'pml_list()') THEN
    hint := pml_internal.pml_hint(hint, 'cap_list shows what there is, and pml_discover finds it by an intent.');
  ELSE
    hint := pml_internal.pml_hint(hint, replace(hint, 'pml_history', 'cap_history'));
  END IF;
  -- An empty text would be shown as such.
  IF coalesce(detail, '') = '' THEN
    RAISE EXCEPTION USING ERRCODE = sqlstate, MESSAGE = message, HINT = hint;
  END IF;
  RAISE EXCEPTION USING ERRCODE = sqlstate, MESSAGE = message, DETAIL = detail, HINT = hint;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_refuse_spec(text, text, text, text) IS
  'Raises an error of pml_resolve again in the caller''s terms; if the name is a tool''s, with how to call that';

CREATE FUNCTION pml_internal.pml_workflow_not_found(workflow_id uuid) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- The policy hides other users' runs.
  IF EXISTS (SELECT FROM pml.execution_trace t
             WHERE t.id = pml_workflow_not_found.workflow_id AND t.org = pml_internal.pml_org()
               AND t.project = pml_internal.pml_project() AND t.user_id = pml_internal.pml_actor()) THEN
    RAISE EXCEPTION USING ERRCODE = 'PM001', MESSAGE = format('Workflow %s has expired', workflow_id),
      HINT = pml_internal.pml_hint('State and results of runs expire (pml.workflow_ttl, pml.result_ttl). Run it again.',
                                   'State and results of runs expire. Run it again.');
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'PM001', MESSAGE = format('Workflow not found: %s', coalesce(workflow_id::text, 'none given')),
    HINT = pml_internal.pml_hint(
      'Give the workflow_id that pml_begin returned. Only the actor who began a run can finish it or fetch its results.',
      'Give the workflowId of an answer of pml_execute. Only whoever began a run can fetch its results.');
END
$$;
COMMENT ON FUNCTION pml_internal.pml_workflow_not_found(uuid) IS 'The error for a run that is unknown or has expired';
