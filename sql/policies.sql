-- Privileges and row-level security policies. Ordinary roles and the proxy's role have no privilege on tables: they call
-- public functions, which run as pml_engine, and the policies filter rows for the caller (pml_visible, pml_may_act).
-- seal.sql enables row-level security.

GRANT SELECT ON pml.capability_records, pml.capability_usage, pml.capability_versions, pml.capability_aliases,
  pml.capability_dependencies, pml.capability_rename_history, pml.scope_grants, pml.tool_schema, pml.tool_names,
  pml.tool_usage, pml.execution_trace, pml.task_results, pml.workflow_state, pml.scope_locks, pml.slots,
  pml.tokens TO pml_engine;
GRANT INSERT, UPDATE ON pml.capability_records, pml.workflow_state, pml.scope_locks, pml.tokens TO pml_engine;
GRANT DELETE ON pml.capability_aliases TO pml_engine;
GRANT INSERT, UPDATE, DELETE ON pml.tool_schema TO pml_engine;
GRANT INSERT ON pml.tool_usage, pml.execution_trace, pml.task_results TO pml_engine;
GRANT INSERT, DELETE ON pml.scope_grants TO pml_engine;

CREATE POLICY readers ON pml.capability_records FOR SELECT TO pml_engine
  USING (pml_internal.pml_visible(org, project, visibility, created_by));
CREATE POLICY makers ON pml.capability_records FOR INSERT TO pml_engine
  WITH CHECK (pml_internal.pml_may_act(org, project) AND created_by = pml_internal.pml_actor());
CREATE POLICY changers ON pml.capability_records FOR UPDATE TO pml_engine
  USING (pml_internal.pml_visible(org, project, visibility, created_by) AND pml_internal.pml_may_act(org, project))
  WITH CHECK (pml_internal.pml_may_act(org, project));

-- Only read together with the record, and only sums are shown.
CREATE POLICY readers ON pml.capability_usage FOR SELECT TO pml_engine USING (true);
CREATE POLICY readers ON pml.capability_versions FOR SELECT TO pml_engine
  USING (EXISTS (SELECT FROM pml.capability_records r WHERE r.id = capability_fqdn));
CREATE POLICY readers ON pml.capability_aliases FOR SELECT TO pml_engine
  USING (EXISTS (SELECT FROM pml.capability_records r WHERE r.id = target_fqdn));
CREATE POLICY releasers ON pml.capability_aliases FOR DELETE TO pml_engine
  USING (pml_internal.pml_may_act(org, project) AND EXISTS (SELECT FROM pml.capability_records r WHERE r.id = target_fqdn));
CREATE POLICY readers ON pml.capability_dependencies FOR SELECT TO pml_engine
  USING (EXISTS (SELECT FROM pml.capability_records r WHERE r.id = from_fqdn)
         AND EXISTS (SELECT FROM pml.capability_records r WHERE r.id = to_fqdn));
CREATE POLICY readers ON pml.capability_rename_history FOR SELECT TO pml_engine
  USING (EXISTS (SELECT FROM pml.capability_records r WHERE r.id = capability_id));

CREATE POLICY readers ON pml.scope_grants FOR SELECT TO pml_engine
  USING (pml_internal.pml_is_admin()
         OR EXISTS (SELECT FROM pg_catalog.pg_roles p
                    WHERE p.rolname = role_name AND pg_catalog.pg_has_role(pml_internal.pml_caller(), p.oid, 'USAGE')));
CREATE POLICY granters ON pml.scope_grants TO pml_engine
  USING (pml_internal.pml_is_admin()) WITH CHECK (pml_internal.pml_is_admin());
CREATE POLICY admins_only ON pml.tokens TO pml_engine
  USING (pml_internal.pml_is_admin()) WITH CHECK (pml_internal.pml_is_admin());
CREATE POLICY scope ON pml.scope_locks TO pml_engine
  USING (pml_internal.pml_may_act(org, project)) WITH CHECK (pml_internal.pml_may_act(org, project));

-- The tools of base servers are public, like the servers.
CREATE POLICY readers ON pml.tool_schema FOR SELECT TO pml_engine
  USING (pml_internal.pml_visible(org, project, CASE WHEN org = 'pml' AND project = 'std' THEN 'public' ELSE 'project' END, ''));
CREATE POLICY writers ON pml.tool_schema TO pml_engine
  USING (pml_internal.pml_may_act(org, project)) WITH CHECK (pml_internal.pml_may_act(org, project));
CREATE POLICY readers ON pml.tool_names FOR SELECT TO pml_engine
  USING (CASE kind WHEN 'tool' THEN pml_internal.pml_visible(org, project, 'project', '')
                   ELSE EXISTS (SELECT FROM pml.capability_records r WHERE r.id = fqdn) END);
CREATE POLICY readers ON pml.tool_usage FOR SELECT TO pml_engine
  USING (pml_internal.pml_visible(org, project, 'private', actor));
-- One's own calls, of capabilities that one sees.
CREATE POLICY makers ON pml.tool_usage FOR INSERT TO pml_engine
  WITH CHECK (pml_internal.pml_may_act(org, project) AND actor = pml_internal.pml_actor()
              AND (capability_fqdn IS NULL OR EXISTS (SELECT FROM pml.capability_records r WHERE r.id = capability_fqdn)));
CREATE POLICY readers ON pml.execution_trace FOR SELECT TO pml_engine
  USING (pml_internal.pml_visible(org, project, 'private', user_id));
CREATE POLICY makers ON pml.execution_trace FOR INSERT TO pml_engine
  WITH CHECK (pml_internal.pml_may_act(org, project) AND user_id = pml_internal.pml_actor()
              AND (capability_id IS NULL OR EXISTS (SELECT FROM pml.capability_records r WHERE r.id = capability_id)));
-- Times only.
CREATE POLICY readers ON pml.slots FOR SELECT TO pml_engine USING (true);
CREATE POLICY readers ON pml.workflow_state FOR SELECT TO pml_engine
  USING (pml_internal.pml_visible(org, project, 'private', actor));
CREATE POLICY makers ON pml.workflow_state FOR INSERT TO pml_engine
  WITH CHECK (pml_internal.pml_may_act(org, project) AND actor = pml_internal.pml_actor());
CREATE POLICY changers ON pml.workflow_state FOR UPDATE TO pml_engine
  USING (pml_internal.pml_may_act(org, project) AND actor = pml_internal.pml_actor());
CREATE POLICY readers ON pml.task_results FOR SELECT TO pml_engine
  USING (pml_internal.pml_visible(org, project, 'private', actor));
CREATE POLICY makers ON pml.task_results FOR INSERT TO pml_engine
  WITH CHECK (pml_internal.pml_may_act(org, project) AND actor = pml_internal.pml_actor());
