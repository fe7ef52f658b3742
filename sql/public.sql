-- The public functions. Each has a namesake in pml_internal. A C function, which runs no SQL, is published as it is; any
-- other is published as the gate (pml_ext/src/gate.rs), which calls the namesake as pml_engine.
DO $$
DECLARE
  published record;
BEGIN
  FOR published IN
    SELECT p.oid, p.proname, p.provolatile, p.proparallel, p.proisstrict, p.procost, p.prorows, p.proretset,
           l.lanname = 'c' AS is_c, p.prosrc, listed.callers
    FROM (VALUES
      -- Anyone; what they may do and see is decided inside.
      ('pml_act_as', NULL), ('pml_actor', NULL), ('pml_agent_tools', NULL), ('pml_analyze', NULL), ('pml_ask', NULL), ('pml_begin', NULL), ('pml_cap', NULL),
      ('pml_check_args', NULL), ('pml_code', NULL), ('pml_code_hash', NULL), ('pml_compile', NULL), ('pml_delete', NULL),
      ('pml_dependents', NULL), ('pml_diff', NULL), ('pml_discover', NULL), ('pml_display_code', NULL),
      ('pml_expire', NULL), ('pml_finish', NULL), ('pml_fork', NULL), ('pml_fqdn', NULL), ('pml_grant', NULL),
      ('pml_history', NULL), ('pml_infer_parameters', NULL), ('pml_is_admin', NULL), ('pml_is_unnamed', NULL),
      ('pml_lift_literals', NULL), ('pml_list', NULL), ('pml_long_code_hash', NULL), ('pml_lookup', NULL),
      ('pml_may_act', NULL), ('pml_merge', NULL), ('pml_org', NULL), ('pml_parse_fqdn', NULL), ('pml_project', NULL),
      ('pml_provides', NULL), ('pml_register', NULL), ('pml_register_server', NULL), ('pml_register_tool', NULL),
      ('pml_register_tools', NULL), ('pml_release_alias', NULL), ('pml_rename', NULL), ('pml_resolve', NULL),
      ('pml_revoke', NULL), ('pml_rollback', NULL), ('pml_routing', NULL), ('pml_stored_rows', NULL),
      ('pml_task_result', NULL), ('pml_token_add', NULL), ('pml_token_list', NULL), ('pml_token_revoke', NULL),
      ('pml_tool_used', NULL), ('pml_tools', NULL), ('pml_tools_used', NULL), ('pml_transform', NULL),
      ('pml_update', NULL), ('pml_version_tag', NULL), ('pml_visible', NULL), ('pml_whois', NULL),
      -- Behind the views.
      ('pml_aliases', NULL), ('pml_calls', NULL), ('pml_capabilities', NULL), ('pml_capability_history', NULL),
      ('pml_dependencies', NULL), ('pml_grants', NULL), ('pml_renames', NULL), ('pml_runs', NULL),
      ('pml_server_tools', NULL),
      -- What only a proxy needs.
      ('pml_callable', 'pml_proxy, pml_admin'), ('pml_expire_some', 'pml_proxy, pml_admin'), ('pml_finish_many', 'pml_proxy, pml_admin'),
      ('pml_fold_usage', 'pml_proxy, pml_admin'), ('pml_plan', 'pml_proxy, pml_admin'), ('pml_proxy_key', 'pml_proxy, pml_admin'),
      ('pml_stats', 'pml_proxy, pml_admin'), ('pml_token_check', 'pml_proxy, pml_admin')) AS listed (name, callers)
    JOIN pg_proc p ON p.proname = listed.name AND p.pronamespace = 'pml_internal'::regnamespace
    JOIN pg_language l ON l.oid = p.prolang
  LOOP
    EXECUTE format(
      'CREATE OR REPLACE FUNCTION @extschema@.%I(%s) RETURNS %s LANGUAGE c %s %s PARALLEL %s COST %s %s AS %L, %L',
      published.proname, pg_get_function_arguments(published.oid), pg_get_function_result(published.oid),
      CASE published.provolatile WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' ELSE 'VOLATILE' END,
      CASE WHEN published.proisstrict THEN 'STRICT' ELSE '' END,
      CASE published.proparallel WHEN 's' THEN 'SAFE' WHEN 'r' THEN 'RESTRICTED' ELSE 'UNSAFE' END,
      -- The planner assumes that C functions are cheap; those behind the gate aren't.
      CASE WHEN published.is_c THEN published.procost ELSE greatest(published.procost, 100) END,
      CASE WHEN published.proretset THEN 'ROWS ' || published.prorows ELSE '' END,
      'MODULE_PATHNAME', CASE WHEN published.is_c THEN published.prosrc ELSE 'pml_gate' END);
    EXECUTE format('COMMENT ON FUNCTION @extschema@.%I(%s) IS %L', published.proname,
                   pg_get_function_identity_arguments(published.oid), obj_description(published.oid, 'pg_proc'));
    IF published.callers IS NOT NULL THEN
      EXECUTE format('REVOKE EXECUTE ON FUNCTION @extschema@.%I(%s) FROM PUBLIC', published.proname,
                     pg_get_function_identity_arguments(published.oid));
      EXECUTE format('GRANT EXECUTE ON FUNCTION @extschema@.%I(%s) TO %s', published.proname,
                     pg_get_function_identity_arguments(published.oid), published.callers);
    END IF;
  END LOOP;
END
$$;

CREATE VIEW pml.capabilities AS SELECT * FROM @extschema@.pml_capabilities();
COMMENT ON VIEW pml.capabilities IS 'The capabilities and servers that the current user sees';
CREATE VIEW pml.capability_history AS SELECT * FROM @extschema@.pml_capability_history();
COMMENT ON VIEW pml.capability_history IS 'All their versions';
CREATE VIEW pml.aliases AS SELECT * FROM @extschema@.pml_aliases();
COMMENT ON VIEW pml.aliases IS 'Their former names, which still resolve';
CREATE VIEW pml.renames AS SELECT * FROM @extschema@.pml_renames();
COMMENT ON VIEW pml.renames IS 'Who renamed them, and when';
CREATE VIEW pml.dependencies AS SELECT * FROM @extschema@.pml_dependencies();
COMMENT ON VIEW pml.dependencies IS 'Which of them calls which';
CREATE VIEW pml.tools AS SELECT * FROM @extschema@.pml_server_tools();
COMMENT ON VIEW pml.tools IS 'The tools of MCP servers in the scopes of the current user';
CREATE VIEW pml.runs AS SELECT * FROM @extschema@.pml_runs();
COMMENT ON VIEW pml.runs IS 'The runs of the current user (admins: all)';
CREATE VIEW pml.calls AS SELECT * FROM @extschema@.pml_calls();
COMMENT ON VIEW pml.calls IS 'The calls of tools and capabilities by the current user (admins: all)';
CREATE VIEW pml.grants AS SELECT * FROM @extschema@.pml_grants();
COMMENT ON VIEW pml.grants IS 'The scopes granted to roles of the current user (admins: all)';
GRANT SELECT ON pml.capabilities, pml.capability_history, pml.aliases, pml.renames, pml.dependencies, pml.tools, pml.runs,
  pml.calls, pml.grants TO PUBLIC;
