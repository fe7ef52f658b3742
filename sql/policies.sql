-- Who may read and write what. Everything rests on pml_visible and pml_may_act, and on seeing the record itself.

GRANT ALL ON ALL TABLES IN SCHEMA pml TO pml_admin;
GRANT ALL ON ALL SEQUENCES IN SCHEMA pml TO pml_admin;
GRANT SELECT ON ALL TABLES IN SCHEMA pml TO PUBLIC;
REVOKE SELECT ON pml.name_claims, pml.proxy_key, pml.tokens FROM PUBLIC;
GRANT INSERT, UPDATE ON pml.capability_records TO PUBLIC;
GRANT DELETE ON pml.capability_aliases TO PUBLIC;
GRANT INSERT, UPDATE, DELETE ON pml.tool_schema TO PUBLIC;
GRANT INSERT ON pml.tool_usage, pml.execution_trace, pml.task_results TO PUBLIC;
GRANT INSERT, UPDATE ON pml.workflow_state TO PUBLIC;
GRANT USAGE ON SEQUENCE pml.tool_usage_id_seq TO PUBLIC;

DO $$
DECLARE
  protected regclass;
BEGIN
  FOR protected IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = 'pml'::regnamespace AND c.relkind = 'r' LOOP
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', protected);
    EXECUTE format('CREATE POLICY admins ON %s TO pml_admin USING (true) WITH CHECK (true)', protected);
  END LOOP;
END
$$;

CREATE POLICY readers ON pml.capability_records FOR SELECT
  USING (@extschema@.pml_visible(org, project, visibility, created_by));
CREATE POLICY makers ON pml.capability_records FOR INSERT
  WITH CHECK (@extschema@.pml_may_act(org, project) AND created_by = @extschema@.pml_actor());
CREATE POLICY changers ON pml.capability_records FOR UPDATE
  USING (@extschema@.pml_visible(org, project, visibility, created_by) AND @extschema@.pml_may_act(org, project))
  WITH CHECK (@extschema@.pml_may_act(org, project));

CREATE POLICY readers ON pml.capability_versions FOR SELECT
  USING (EXISTS (SELECT FROM pml.capability_records r WHERE r.id = capability_fqdn));
CREATE POLICY readers ON pml.capability_aliases FOR SELECT
  USING (EXISTS (SELECT FROM pml.capability_records r WHERE r.id = target_fqdn));
CREATE POLICY releasers ON pml.capability_aliases FOR DELETE
  USING (@extschema@.pml_may_act(org, project) AND EXISTS (SELECT FROM pml.capability_records r WHERE r.id = target_fqdn));
CREATE POLICY readers ON pml.capability_dependencies FOR SELECT
  USING (EXISTS (SELECT FROM pml.capability_records r WHERE r.id = from_fqdn)
         AND EXISTS (SELECT FROM pml.capability_records r WHERE r.id = to_fqdn));
CREATE POLICY readers ON pml.capability_rename_history FOR SELECT
  USING (EXISTS (SELECT FROM pml.capability_records r WHERE r.id = capability_id));

CREATE POLICY readers ON pml.scope_grants FOR SELECT
  USING (EXISTS (SELECT FROM pg_catalog.pg_roles p
                 WHERE p.rolname = role_name AND pg_catalog.pg_has_role(p.oid, 'USAGE')));

CREATE POLICY readers ON pml.tool_schema FOR SELECT
  USING (@extschema@.pml_visible(org, project, 'project', ''));
CREATE POLICY writers ON pml.tool_schema
  USING (@extschema@.pml_may_act(org, project)) WITH CHECK (@extschema@.pml_may_act(org, project));
CREATE POLICY readers ON pml.tool_names FOR SELECT
  USING (CASE kind WHEN 'tool' THEN @extschema@.pml_visible(org, project, 'project', '')
                   ELSE EXISTS (SELECT FROM pml.capability_records r WHERE r.id = fqdn) END);
CREATE POLICY readers ON pml.provides_edges FOR SELECT
  USING (@extschema@.pml_visible(org, project, 'project', ''));
CREATE POLICY readers ON pml.tool_usage FOR SELECT
  USING (@extschema@.pml_visible(org, project, 'private', actor));
-- What one did oneself, and of capabilities that one sees.
CREATE POLICY makers ON pml.tool_usage FOR INSERT
  WITH CHECK (@extschema@.pml_may_act(org, project) AND actor = @extschema@.pml_actor()
              AND (capability_fqdn IS NULL OR EXISTS (SELECT FROM pml.capability_records r WHERE r.id = capability_fqdn)));
CREATE POLICY readers ON pml.execution_trace FOR SELECT
  USING (@extschema@.pml_visible(org, project, 'private', user_id));
CREATE POLICY makers ON pml.execution_trace FOR INSERT
  WITH CHECK (@extschema@.pml_may_act(org, project) AND user_id = @extschema@.pml_actor()
              AND (capability_id IS NULL OR EXISTS (SELECT FROM pml.capability_records r WHERE r.id = capability_id)));
CREATE POLICY readers ON pml.workflow_state FOR SELECT
  USING (@extschema@.pml_visible(org, project, 'private', actor));
CREATE POLICY makers ON pml.workflow_state FOR INSERT
  WITH CHECK (@extschema@.pml_may_act(org, project) AND actor = @extschema@.pml_actor());
CREATE POLICY changers ON pml.workflow_state FOR UPDATE
  USING (@extschema@.pml_may_act(org, project) AND actor = @extschema@.pml_actor());
CREATE POLICY readers ON pml.task_results FOR SELECT
  USING (@extschema@.pml_visible(org, project, 'private', actor));
CREATE POLICY makers ON pml.task_results FOR INSERT
  WITH CHECK (@extschema@.pml_may_act(org, project) AND actor = @extschema@.pml_actor());

-- Statistics would let the estimates of EXPLAIN tell which organisations, people, names and tools there are. Whatever is
-- looked for has a key, which is planned well without them. Only of org and project one value is kept, the commonest: with
-- none at all a plain SELECT by scope and name reads the whole scope.
DO $$
DECLARE
  hidden record;
BEGIN
  FOR hidden IN
    SELECT c.oid::regclass AS relation, CASE c.relkind WHEN 'r' THEN 'TABLE' ELSE 'INDEX' END AS kind,
           CASE c.relkind WHEN 'r' THEN quote_ident(a.attname) ELSE a.attnum::text END AS attribute,
           CASE WHEN c.relkind = 'r' AND a.attname IN ('org', 'project') THEN 1 ELSE 0 END AS kept
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = 'pml'::regnamespace
      -- An index has statistics of its own where it holds an expression.
      AND (c.relkind = 'r' OR c.relkind = 'i' AND (SELECT i.indkey[a.attnum - 1] = 0 FROM pg_index i WHERE i.indexrelid = c.oid))
  LOOP
    EXECUTE format('ALTER %s %s ALTER COLUMN %s SET STATISTICS %s', hidden.kind, hidden.relation, hidden.attribute, hidden.kept);
  END LOOP;
END
$$;
