-- Code becomes a capability: a new one, or the one that has this code already.

CREATE FUNCTION pml_internal.pml_same_code(code_hash text, name text) RETURNS TABLE (id text, display_name text)
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  place text := pml_internal.pml_scoped(pml_internal.pml_org(), pml_internal.pml_project(), pml_same_code.code_hash);
BEGIN
  RETURN QUERY
    SELECT r.id::text, r.display_name::text
    FROM pml.capability_records r
    WHERE pml_internal.pml_scoped(r.org, r.project, r.code_hash) = place AND r.record_type = 'capability' AND r.deleted_at IS NULL
    ORDER BY r.display_name = pml_same_code.name DESC, r.created_by = pml_internal.pml_actor() DESC, r.created_at
    LIMIT 1;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_same_code(text, text) IS
  'The capability of the current scope that has this code, preferably under this name';

CREATE FUNCTION pml_internal.pml_check_same_code(existing_name text, name text) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF existing_name <> name AND NOT pml_internal.pml_is_unnamed(existing_name) THEN
    RAISE EXCEPTION USING ERRCODE = 'PM003',
      MESSAGE = format('This code is already capability "%s" in scope %s.%s',
                       existing_name, pml_internal.pml_org(), pml_internal.pml_project()),
      HINT = format('Call it by that name, rename it with pml_rename, or copy it: SELECT pml_fork(''%s'', ''%s'').',
                    existing_name, name);
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_same_code(text, text) IS
  'An error if code that has one name is to get another';

CREATE FUNCTION pml_internal.pml_note_tools(fqdn text, tasks jsonb) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  called text[] := ARRAY(SELECT DISTINCT task ->> 'target' FROM jsonb_array_elements(tasks) AS task
                         WHERE task ->> 'kind' = 'tool' AND task ->> 'target' LIKE '%_:_%');
BEGIN
  UPDATE pml.capability_records r
  SET tools_used = r.tools_used || ARRAY(SELECT tool FROM unnest(called) AS tool WHERE tool <> ALL (r.tools_used))
  WHERE r.id = fqdn AND NOT r.tools_used @> called;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_note_tools(text, jsonb) IS
  'Adds the tools that a run called and the code doesn''t show (mcp[x]) to those that the capability uses';

CREATE FUNCTION pml_internal.pml_keep_code(context jsonb, name text) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  existing record;
  fqdn text;
BEGIN
  LOOP
    SELECT same.* INTO existing FROM pml_internal.pml_same_code(context ->> 'hash', pml_keep_code.name) AS same;
    EXIT WHEN FOUND;
    PERFORM set_config('pml.ran_with', coalesce(context ->> 'args', ''), true);
    INSERT INTO pml.capability_records AS r (display_name, org, project, code_snippet, description, source)
    VALUES (pml_keep_code.name, pml_internal.pml_org(), pml_internal.pml_project(), context ->> 'code', context ->> 'description',
            pml_internal.pml_kept_source(context -> 'source'))
    ON CONFLICT DO NOTHING
    RETURNING r.id INTO fqdn;
    PERFORM set_config('pml.ran_with', '', true);
    IF fqdn IS NOT NULL THEN
      RETURN fqdn;
    END IF;
  END LOOP;
  PERFORM pml_internal.pml_check_same_code(existing.display_name, pml_keep_code.name);
  IF existing.display_name <> pml_keep_code.name THEN
    UPDATE pml.capability_records r
    SET display_name = pml_keep_code.name, description = coalesce(r.description, context ->> 'description')
    WHERE r.id = existing.id;
  END IF;
  RETURN existing.id;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_keep_code(jsonb, text) IS
  'The capability that code which ran well becomes: a new one, or the one that has this code already';
