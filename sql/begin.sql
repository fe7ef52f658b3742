-- Begins a run: turns a request into a plan. A plan is read, never written; what has to be found again is kept by pml_begin.

CREATE FUNCTION pml_internal.pml_check_request(request jsonb) RETURNS jsonb
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- Other clients call it by its id.
  id_key text := CASE WHEN jsonb_typeof(request) <> 'object' THEN NULL WHEN request ? 'capabilityId' THEN 'capabilityId'
                      WHEN request ? 'capability_id' THEN 'capability_id' END;
  has_both boolean := id_key IS NOT NULL AND request -> id_key <> 'null' AND coalesce(request -> 'capability', 'null') <> 'null';
  given jsonb := CASE WHEN id_key IS NULL THEN request WHEN request -> id_key = 'null' THEN request - id_key
                      ELSE request - id_key || jsonb_build_object('capability', request -> id_key) END;
  -- Besides what agents may give, proxies say which tool was called, and which servers they have.
  checked jsonb := pml_internal.pml_check_object('The request', given,
    pml_internal.pml_schema_keys(pml_internal.pml_agent_tool_schema('pml_execute')), '{}',
    '{"tool": "string", "servers": "list of strings"}');
  options jsonb := CASE WHEN checked ? 'options'
    THEN pml_internal.pml_check_object('options', checked -> 'options', pml_internal.pml_schema_keys(
           pml_internal.pml_agent_tool_schema('pml_execute') #> '{properties,options}'), '{}') END;
  problem text := CASE
    WHEN has_both THEN format('Give either "capability" or "%s", not both', id_key)
    WHEN checked ? 'code' AND checked ? 'source' THEN 'Give either "code" or "source", not both'
    WHEN checked ? 'code' AND checked ? 'capability' THEN 'Give either "code" or "capability", not both'
    WHEN checked ? 'source' AND checked ? 'capability' THEN 'Give either "source" or "capability", not both'
    WHEN checked ? 'tool' AND checked ?| '{code,source,capability}' THEN 'Give "tool" without "code", "source" and "capability"'
    WHEN NOT checked ?| '{code,source,capability,tool}' AND coalesce(checked ->> 'intent', '') !~ '\S'
      THEN 'Give "code" to run, "capability" to call, or "intent" for suggestions'
    WHEN checked ? 'name' AND NOT checked ?| '{code,source}' THEN 'A "name" is given to "code"'
    WHEN (options ->> 'timeout')::bigint NOT BETWEEN 1 AND 86400000
      THEN '"timeout" must be from 1 to 86400000 milliseconds' END;
BEGIN
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = problem,
      HINT = 'To run new code give code and an intent; to call a capability give capability and args; for suggestions give an intent.';
  END IF;
  RETURN checked;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_request(jsonb) IS 'The request, validated and without nulls';

CREATE FUNCTION pml_internal.pml_suggestions(intent text, servers text[]) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object(
    'tools', (
      SELECT coalesce(jsonb_agg(jsonb_build_object(
               'name', s.name, 'tool', s.tool_name, 'description', s.description, 'inputSchema', s.input_schema,
               'score', s.score) ORDER BY s.score DESC, s.name), '[]')
      FROM pml_internal.pml_search(pml_suggestions.intent, 'tool', pml_suggestions.servers, NULL, 5, 0) AS s),
    'capabilities', (
      SELECT coalesce(jsonb_agg(jsonb_build_object(
               'name', s.name, 'tool', s.tool_name, 'description', s.description, 'parameters', s.input_schema,
               'score', s.score, 'usageCount', s.usage_count, 'successRate', s.success_rate)
               ORDER BY s.score DESC, s.usage_count DESC, s.name), '[]')
      FROM pml_internal.pml_search(pml_suggestions.intent, 'capability', NULL, NULL, 5, 0) AS s))
$$;
COMMENT ON FUNCTION pml_internal.pml_suggestions(text, text[]) IS 'The tools and capabilities that fit an intent best';

CREATE FUNCTION pml_internal.pml_plan_code(request jsonb) RETURNS jsonb
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  here_org text := pml_internal.pml_org();
  here_project text := pml_internal.pml_project();
  new_name text := pml_internal.pml_check_name(pml_internal.pml_given_name(request ->> 'name'));
  code text := coalesce(request ->> 'code', pml_internal.pml_source_code(request -> 'source'));
  source jsonb := nullif(pml_internal.pml_kept_source(request -> 'source'), '{"type": "code"}');
  compiled jsonb;
  called jsonb;
  existing record;
BEGIN
  PERFORM pml_internal.pml_check_code(code);
  compiled := pml_internal.pml_compile(code);
  SELECT r.id, r.display_name INTO existing FROM pml_internal.pml_same_code(compiled ->> 'hash', new_name) AS r;
  IF new_name IS NOT NULL THEN
    PERFORM pml_internal.pml_check_not_recursive(code, new_name);
    PERFORM pml_internal.pml_check_same_code(existing.display_name, new_name);
    -- Known now, so not after a run with all its effects. What has the name already keeps it.
    IF existing.display_name IS DISTINCT FROM new_name THEN
      PERFORM pml_internal.pml_check_name_free(here_org, here_project, new_name, existing.id);
    END IF;
    IF pml_internal.pml_is_taken(new_name, existing.id) THEN
      PERFORM pml_internal.pml_name_taken(here_org, here_project, new_name);
    END IF;
  END IF;
  called := pml_internal.pml_called(ARRAY(SELECT jsonb_array_elements_text(compiled -> 'capabilities')),
                                   ARRAY(SELECT jsonb_array_elements_text(compiled -> 'tools')));
  RETURN jsonb_build_object(
    'status', 'run', 'mode', 'direct', 'executable', compiled -> 'executable', 'name', new_name, 'fqdn', NULL, 'version', NULL,
    'capabilities', called -> 'capabilities', 'missing', called -> 'missing', 'tools', called -> 'tools',
    'dag', pml_internal.pml_shown_dag(compiled -> 'structure'),
    'context', jsonb_strip_nulls(jsonb_build_object('code', compiled -> 'linked', 'hash', compiled -> 'hash', 'name', new_name,
        'description', coalesce(request ->> 'description', request ->> 'intent')))
      -- Not stripped: a null in a source has a meaning.
      || CASE WHEN source IS NULL THEN '{}' ELSE jsonb_build_object('source', source) END);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_plan_code(jsonb) IS 'The plan for new code';

CREATE FUNCTION pml_internal.pml_plan_capability(spec text) RETURNS jsonb
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  located pml_internal.pml_located;
  refusal text;
  message text;
  detail text;
  hint text;
  ran record;
  plan jsonb;
BEGIN
  BEGIN
    located := pml_internal.pml_locate(spec);
  EXCEPTION WHEN SQLSTATE 'PM001' OR SQLSTATE 'PM002' THEN
    GET STACKED DIAGNOSTICS refusal = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
                            hint = PG_EXCEPTION_HINT;
    PERFORM pml_internal.pml_refuse_spec(refusal, message, detail, hint);
  END;
  SELECT r.record_type, pml_internal.pml_name_here(r.org, r.project, r.display_name) AS shown_name,
         v.version, v.executable, v.code_snippet, v.parameters_schema, v.parameters_explicit, v.capabilities_used,
         CASE WHEN v.version = r.version THEN r.tools_used ELSE v.tools_used END AS tools_used,
         -- A whole row as argument costs more than most calls have to pay.
         CASE WHEN v.version <> r.version THEN v.structure WHEN r.capabilities_used = '{}' THEN coalesce(r.structure, v.structure)
              ELSE coalesce(pml_internal.pml_current_structure(r), v.structure) END AS structure
  INTO ran
  FROM pml.capability_records r JOIN pml.capability_versions v ON v.capability_fqdn = r.id
  WHERE r.id = located.fqdn AND v.version = located.version;
  IF ran.record_type <> 'capability' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('"%s" is a server, not a capability', ran.shown_name),
      HINT = 'Call one of its tools, or a capability.';
  END IF;
  plan := CASE WHEN ran.capabilities_used = '{}'
    THEN jsonb_build_object('capabilities', '{}'::jsonb, 'tools', ran.tools_used)
    ELSE pml_internal.pml_called(ran.capabilities_used, ran.tools_used) END;
  RETURN plan || jsonb_build_object(
    'status', 'run', 'mode', 'call_by_name',
    'executable', coalesce(ran.executable, pml_internal.pml_compile(ran.code_snippet) ->> 'executable'),
    'name', ran.shown_name, 'via_alias', located.alias, 'fqdn', located.fqdn, 'version', ran.version,
    'parameters_schema', ran.parameters_schema, 'parameters_explicit', ran.parameters_explicit,
    'dag', pml_internal.pml_shown_dag(ran.structure),
    'context', jsonb_build_object('fqdn', located.fqdn, 'version', ran.version, 'name', ran.shown_name,
                                  'called', coalesce(located.alias, ran.shown_name))
      || CASE WHEN located.alias IS NULL THEN '{}'
              ELSE jsonb_build_object('warning', pml_internal.pml_alias_warning(spec)) END);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_plan_capability(text) IS 'The plan for calls of a capability; it holds for any arguments';

CREATE FUNCTION pml_internal.pml_plan_of(asked jsonb) RETURNS jsonb
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  spec text := asked ->> 'capability';
  named record;
BEGIN
  PERFORM pml_internal.pml_check_may_act(pml_internal.pml_org(), pml_internal.pml_project());
  IF asked ?| '{code,source}' THEN
    RETURN pml_internal.pml_plan_code(asked);
  ELSIF asked ? 'tool' OR spec LIKE 'mcp\_\_%' THEN
    SELECT * INTO named FROM pml_internal.pml_tool(coalesce(asked ->> 'tool', spec));
    IF named.kind = 'tool' AND asked ? 'tool' THEN
      RETURN jsonb_build_object('status', 'tool', 'server', named.server_id, 'tool', named.tool);
    ELSIF named.kind = 'capability' AND (spec IS NULL OR NOT EXISTS (
            SELECT FROM pml.capability_records r
            WHERE r.org = pml_internal.pml_org() AND r.project = pml_internal.pml_project() AND r.display_name = spec)) THEN
      spec := named.name;
    ELSIF asked ? 'tool' THEN
      PERFORM pml_internal.pml_tool_not_found(asked ->> 'tool');
    END IF;
  END IF;
  IF spec IS NOT NULL THEN
    RETURN pml_internal.pml_plan_capability(spec);
  END IF;
  RETURN jsonb_build_object('status', 'suggestions', 'mode', 'suggestion', 'suggestions', pml_internal.pml_suggestions(
    asked ->> 'intent',
    CASE WHEN asked ? 'servers' THEN ARRAY(SELECT jsonb_array_elements_text(asked -> 'servers')) END));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_plan_of(jsonb) IS 'The plan for a valid request';

CREATE FUNCTION pml_internal.pml_plan(request jsonb) RETURNS jsonb
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN pml_internal.pml_plan_of(pml_internal.pml_check_request(request));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_plan(jsonb) IS
  'What to do for a request, as pml_begin, without its arguments and without keeping a run: pml_finish_many takes the outcome (proxies only)';

CREATE FUNCTION pml_internal.pml_keep_workflow(plan jsonb, request jsonb, args jsonb) RETURNS uuid
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  -- A run may take longer than its state is kept.
  kept_for interval := greatest(current_setting('pml.workflow_ttl')::interval,
    coalesce((request #>> '{options,timeout}')::bigint, 0) * interval '1 millisecond' + interval '5 minutes');
  new_id uuid;
BEGIN
  INSERT INTO pml.workflow_state AS w (org, project, actor, mode, intent, args, dag, learning_context, expires_at)
  VALUES (pml_internal.pml_org(), pml_internal.pml_project(), pml_internal.pml_actor(), plan ->> 'mode',
          request ->> 'intent', pml_keep_workflow.args, plan -> 'dag', plan -> 'context', now() + kept_for)
  RETURNING w.workflow_id INTO new_id;
  RETURN new_id;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_keep_workflow(jsonb, jsonb, jsonb) IS
  'Stores the state of a run until it is finished; returns its id';

CREATE FUNCTION pml_internal.pml_begin(request jsonb) RETURNS jsonb
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  asked jsonb := pml_internal.pml_check_request(request);
  plan jsonb := pml_internal.pml_plan_of(asked);
  args jsonb := coalesce(asked -> 'args', '{}');
BEGIN
  IF plan ->> 'status' = 'suggestions' THEN
    RETURN plan;
  ELSIF plan ->> 'status' = 'run' THEN
    IF (plan -> 'parameters_explicit')::boolean THEN
      args := pml_internal.pml_check_args(nullif(plan -> 'parameters_schema', 'null'), asked -> 'args');
    ELSIF plan ->> 'mode' = 'call_by_name' THEN
      -- The code applies the defaults that were read off it; filling them in could change what it does.
      PERFORM pml_internal.pml_validate_args(coalesce(nullif(plan -> 'parameters_schema', 'null'), 'true')::text, args::text);
    END IF;
    plan := plan - '{context,parameters_schema,parameters_explicit}'::text[] || jsonb_build_object(
      'workflow_id', pml_internal.pml_keep_workflow(plan, asked, args), 'timeout_ms', (asked #>> '{options,timeout}')::bigint);
  END IF;
  RETURN plan || jsonb_build_object('args', args);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_begin(jsonb) IS
  'What to do for a request: run this code with these arguments, pass a call to a server, or show suggestions';
