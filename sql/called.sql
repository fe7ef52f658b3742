-- The transitive closure of what code calls: capabilities and tools.

CREATE FUNCTION pml_internal.pml_locate_quietly(key text) RETURNS pml_internal.pml_located
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF strpos(key, '@') = 0 THEN
    RETURN (SELECT (r.id, r.version, NULL)::pml_internal.pml_located FROM pml.capability_records r
            WHERE r.id = key AND r.deleted_at IS NULL);
  END IF;
  RETURN pml_internal.pml_locate(key);
EXCEPTION WHEN SQLSTATE 'PM001' OR SQLSTATE 'PM002' OR SQLSTATE 'PM004' THEN
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_locate_quietly(text) IS
  'FQDN and version of a capability called in code (FQDN or FQDN@version); NULL if the current user sees none';

CREATE FUNCTION pml_internal.pml_called(keys text[], tools text[]) RETURNS jsonb
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  frontier text[] := keys;
  level jsonb;
  found jsonb := jsonb_build_object();
  missing jsonb := jsonb_build_object();
  all_tools text[] := tools;
BEGIN
  -- Breadth first; what the caller can't see is left out, and fails when it is called.
  WHILE frontier <> '{}' LOOP
    SELECT coalesce(jsonb_object_agg(key, jsonb_build_object(
             'name', pml_internal.pml_name_here(r.org, r.project, r.display_name), 'fqdn', r.id, 'version', v.version,
             'executable', v.executable, 'parameters_schema', v.parameters_schema,
             'parameters_explicit', v.parameters_explicit, 'tools', v.tools_used, 'calls', v.capabilities_used)), '{}')
    INTO level
    FROM unnest(frontier) AS key
    CROSS JOIN LATERAL (SELECT pml_internal.pml_locate_quietly(key) AS at) AS located
    JOIN pml.capability_records r ON r.id = (located.at).fqdn AND r.record_type = 'capability'
    JOIN pml.capability_versions v ON v.capability_fqdn = r.id AND v.version = (located.at).version;
    SELECT all_tools || coalesce(array_agg(DISTINCT tool), '{}') INTO all_tools
    FROM jsonb_each(level) AS c, jsonb_array_elements_text(c.value -> 'tools') AS tool WHERE tool <> ALL (all_tools);
    SELECT missing || coalesce(jsonb_object_agg(key, pml_internal.pml_shown_name(key)), '{}') INTO missing
    FROM unnest(frontier) AS key WHERE NOT level ? key;
    found := found || level;
    frontier := ARRAY(SELECT DISTINCT called FROM jsonb_each(level) AS c, jsonb_array_elements_text(c.value -> 'calls') AS called
                      WHERE NOT found ? called AND NOT missing ? called);
  END LOOP;
  RETURN jsonb_build_object('capabilities', found, 'missing', missing, 'tools', all_tools);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_called(text[], text[]) IS
  'What code calls, directly or through others: {capabilities, missing, tools}, by the keys that the code uses';

CREATE FUNCTION pml_internal.pml_callable(name text) RETURNS jsonb
  LANGUAGE plpgsql STABLE STRICT
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  base text := split_part(pml_callable.name, '@', 1);
  -- A name of another scope has one spelling.
  spelling text := CASE WHEN strpos(base, '.') > 0 THEN base ELSE pml_internal.pml_spelling(base) END;
  named jsonb := CASE WHEN NOT pml_internal.pml_is_fqdn(base) THEN pml_internal.pml_capabilities_named(
                   pml_internal.pml_org(), pml_internal.pml_project(), ARRAY[base, spelling]) END;
  fqdn jsonb := CASE WHEN named IS NULL THEN to_jsonb(base) ELSE coalesce(named -> base, named -> spelling,
                  -- The older form with "cap:".
                  CASE WHEN base LIKE 'cap:%' THEN to_jsonb((pml_internal.pml_locate_quietly(base || '@latest')).fqdn) END) END;
  key text := (fqdn #>> '{}') || substr(pml_callable.name, length(base) + 1);
  called jsonb;
BEGIN
  IF jsonb_typeof(fqdn) = 'array' THEN
    PERFORM pml_internal.pml_refuse_spelling(base, ARRAY(SELECT jsonb_array_elements_text(fqdn)));
  END IF;
  PERFORM pml_internal.pml_check_may_act(pml_internal.pml_org(), pml_internal.pml_project());
  called := pml_internal.pml_called(ARRAY[key], '{}');
  RETURN CASE WHEN called -> 'capabilities' ? key THEN called || jsonb_build_object('key', key) ELSE '{}' END;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_callable(text) IS
  'The part of a plan for a capability whose name is known only at run time: {key, capabilities, missing, tools}; {} if there is none';
