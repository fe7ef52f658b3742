-- The triggers of every table, in firing order: Postgres fires triggers of a kind by name, and a test compares this list with
-- the catalog. They fire during a restore too, but for those that derive rows which are in the dump (restore.sql).

-- pml.capability_records
CREATE TRIGGER capability_records_a_fill BEFORE INSERT ON pml.capability_records
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_record_fill();
CREATE TRIGGER capability_records_b_identify BEFORE INSERT ON pml.capability_records
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_record_identify();
-- All columns but the counts: counting a use is no change, and must be cheap.
CREATE TRIGGER capability_records_a_guard
  BEFORE UPDATE OF
    id, display_name, org, project, visibility, created_by, deleted_at, version, version_tag, created_at, namespace,
    action, hash, code_hash, record_type, updated_by, updated_at, change_summary, ttl, cache_policy, parent_id,
    forked_from, verified, signature, tags, code_snippet, parameters_schema, description, tools_used, routing,
    routing_explicit, code_url, deleted_by, source, executable, structure, unresolved, capabilities_used,
    parameters_explicit, output_schema, output_explicit, search
  ON pml.capability_records
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_record_guard();
-- Its name comes after those of the triggers that fill the columns it reads.
CREATE TRIGGER capability_records_c_search
  BEFORE INSERT OR UPDATE OF display_name, description, tags, tools_used, code_snippet, search ON pml.capability_records
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_record_search();
CREATE TRIGGER capability_records_no_truncate BEFORE TRUNCATE ON pml.capability_records
  FOR EACH STATEMENT EXECUTE FUNCTION pml_internal.pml_refuse_change('Use pml_delete, which leaves a tombstone.');
CREATE TRIGGER capability_records_refuse_delete BEFORE DELETE ON pml.capability_records
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_record_refuse_delete();
-- All columns but the counts, from which nothing follows.
CREATE TRIGGER capability_records_keep
  AFTER INSERT OR UPDATE OF
    id, display_name, org, project, visibility, created_by, deleted_at, version, version_tag, created_at, namespace,
    action, hash, code_hash, record_type, updated_by, updated_at, change_summary, ttl, cache_policy, parent_id,
    forked_from, verified, signature, tags, code_snippet, parameters_schema, description, tools_used, routing,
    routing_explicit, code_url, deleted_by, source, executable, structure, unresolved, capabilities_used,
    parameters_explicit, output_schema, output_explicit, search
  ON pml.capability_records
  FOR EACH ROW WHEN (NOT pml_internal.pml_is_restore()) EXECUTE FUNCTION pml_internal.pml_record_keep();
-- An explicit output schema is part of the tool list.
CREATE TRIGGER capability_records_notify_output
  AFTER UPDATE OF output_schema, output_explicit, code_snippet ON pml.capability_records FOR EACH ROW
  WHEN ((OLD.output_explicit OR NEW.output_explicit)
        AND (OLD.output_schema, OLD.output_explicit) IS DISTINCT FROM (NEW.output_schema, NEW.output_explicit))
  EXECUTE FUNCTION pml_internal.pml_tools_notify();
-- It never changes afterwards.
CREATE TRIGGER capability_records_refers AFTER INSERT ON pml.capability_records
  FOR EACH ROW WHEN (pml_internal.pml_by_hand()) EXECUTE FUNCTION pml_internal.pml_refers_to_record('parent_id');

-- pml.capability_usage
CREATE TRIGGER capability_usage_refers AFTER INSERT OR UPDATE OF capability_fqdn ON pml.capability_usage
  FOR EACH ROW WHEN (pml_internal.pml_by_hand()) EXECUTE FUNCTION pml_internal.pml_refers_to_record('capability_fqdn');

-- pml.capability_dependencies
CREATE TRIGGER capability_dependencies_refers
  AFTER INSERT OR UPDATE OF from_fqdn, to_fqdn ON pml.capability_dependencies
  FOR EACH ROW WHEN (pml_internal.pml_by_hand()) EXECUTE FUNCTION pml_internal.pml_refers_to_record('from_fqdn', 'to_fqdn');

-- pml.capability_rename_history
CREATE TRIGGER capability_rename_history_refers
  AFTER INSERT OR UPDATE OF capability_id ON pml.capability_rename_history
  FOR EACH ROW WHEN (pml_internal.pml_by_hand()) EXECUTE FUNCTION pml_internal.pml_refers_to_record('capability_id');

-- pml.capability_versions
CREATE TRIGGER capability_versions_immutable BEFORE UPDATE OR DELETE ON pml.capability_versions
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_refuse_change('Make a new version with pml_update or pml_rollback.');
CREATE TRIGGER capability_versions_no_truncate BEFORE TRUNCATE ON pml.capability_versions
  FOR EACH STATEMENT EXECUTE FUNCTION pml_internal.pml_refuse_change('History is kept for ever.');

-- pml.capability_aliases
CREATE TRIGGER capability_aliases_guard BEFORE INSERT ON pml.capability_aliases
  FOR EACH ROW WHEN (NOT pml_internal.pml_is_restore()) EXECUTE FUNCTION pml_internal.pml_alias_guard();
CREATE TRIGGER capability_aliases_no_update BEFORE UPDATE ON pml.capability_aliases
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_refuse_change('Use pml_rename, or pml_release_alias to free the name.');
CREATE TRIGGER capability_aliases_keep AFTER INSERT OR DELETE ON pml.capability_aliases
  FOR EACH ROW WHEN (NOT pml_internal.pml_is_restore()) EXECUTE FUNCTION pml_internal.pml_alias_keep();

-- pml.name_claims
CREATE TRIGGER name_claims_no_truncate BEFORE TRUNCATE ON pml.name_claims
  FOR EACH STATEMENT EXECUTE FUNCTION pml_internal.pml_refuse_change('Claims go with the names that they are of.');
CREATE TRIGGER name_claims_guard BEFORE DELETE OR UPDATE OF org, project, name ON pml.name_claims
  FOR EACH ROW WHEN (pml_internal.pml_by_hand()) EXECUTE FUNCTION pml_internal.pml_claim_guard();
CREATE TRIGGER name_claims_keep_base BEFORE DELETE ON pml.name_claims
  FOR EACH ROW WHEN (OLD.org = 'pml' AND OLD.project = 'std' AND OLD.name LIKE 'mcp:%')
  EXECUTE FUNCTION pml_internal.pml_claim_keep_base();
CREATE TRIGGER name_claims_restore BEFORE INSERT ON pml.name_claims
  FOR EACH ROW WHEN (NEW.org = 'pml' AND NEW.project = 'std' AND NEW.name LIKE 'mcp:%' AND pml_internal.pml_is_restore())
  EXECUTE FUNCTION pml_internal.pml_claim_restore();
CREATE TRIGGER name_claims_tool_name BEFORE INSERT OR UPDATE ON pml.name_claims
  FOR EACH ROW WHEN (NOT pml_internal.pml_is_restore()) EXECUTE FUNCTION pml_internal.pml_claim_keep_tool_name();
CREATE TRIGGER name_claims_tool_name_gone AFTER DELETE ON pml.name_claims
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_claim_keep_tool_name();

-- pml.tool_names
CREATE TRIGGER tool_names_no_truncate BEFORE TRUNCATE ON pml.tool_names
  FOR EACH STATEMENT EXECUTE FUNCTION pml_internal.pml_refuse_change('Wire names go with the names and tools that they are of.');
CREATE TRIGGER tool_names_guard BEFORE DELETE OR UPDATE OF org, project, tool_name ON pml.tool_names
  FOR EACH ROW WHEN (pml_internal.pml_by_hand()) EXECUTE FUNCTION pml_internal.pml_tool_name_guard();

-- pml.tool_schema
CREATE TRIGGER tool_schema_guard BEFORE INSERT OR UPDATE ON pml.tool_schema
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_tool_guard();
CREATE TRIGGER tool_schema_search BEFORE INSERT OR UPDATE ON pml.tool_schema
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_tool_search();
CREATE TRIGGER tool_schema_tool_name BEFORE INSERT OR UPDATE ON pml.tool_schema
  FOR EACH ROW WHEN (NOT pml_internal.pml_is_restore()) EXECUTE FUNCTION pml_internal.pml_tool_keep_tool_name();
CREATE TRIGGER tool_schema_notify AFTER INSERT OR DELETE ON pml.tool_schema
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_tools_notify();
CREATE TRIGGER tool_schema_notify_change AFTER UPDATE ON pml.tool_schema FOR EACH ROW
  WHEN ((OLD.org, OLD.project, OLD.tool_id, OLD.server_id, OLD.name, OLD.description, OLD.input_schema, OLD.output_schema,
         OLD.definition::text)
        IS DISTINCT FROM
        (NEW.org, NEW.project, NEW.tool_id, NEW.server_id, NEW.name, NEW.description, NEW.input_schema, NEW.output_schema,
         NEW.definition::text))
  EXECUTE FUNCTION pml_internal.pml_tools_notify();
CREATE TRIGGER tool_schema_tool_name_gone AFTER DELETE OR UPDATE OF org, project, tool_id ON pml.tool_schema
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_tool_keep_tool_name();
CREATE TRIGGER tool_schema_provides_insert AFTER INSERT ON pml.tool_schema
  REFERENCING NEW TABLE AS changed_tools FOR EACH STATEMENT WHEN (NOT pml_internal.pml_is_restore())
  EXECUTE FUNCTION pml_internal.pml_provides_keep();
CREATE TRIGGER tool_schema_provides_update AFTER UPDATE ON pml.tool_schema
  REFERENCING OLD TABLE AS old_tools NEW TABLE AS changed_tools
  FOR EACH STATEMENT EXECUTE FUNCTION pml_internal.pml_provides_keep();
CREATE TRIGGER tool_schema_provides_delete AFTER DELETE ON pml.tool_schema
  REFERENCING OLD TABLE AS changed_tools FOR EACH STATEMENT EXECUTE FUNCTION pml_internal.pml_provides_keep();

-- pml.tool_usage
CREATE TRIGGER tool_usage_refers AFTER INSERT OR UPDATE OF capability_fqdn ON pml.tool_usage
  FOR EACH ROW WHEN (pml_internal.pml_by_hand()) EXECUTE FUNCTION pml_internal.pml_refers_to_record('capability_fqdn');
CREATE TRIGGER tool_usage_count AFTER INSERT ON pml.tool_usage
  REFERENCING NEW TABLE AS used_tools FOR EACH STATEMENT EXECUTE FUNCTION pml_internal.pml_usage_count();

-- pml.execution_trace
CREATE TRIGGER execution_trace_nested AFTER INSERT OR DELETE OR UPDATE OF id, parent_trace_id ON pml.execution_trace
  FOR EACH ROW WHEN (pml_internal.pml_by_hand()) EXECUTE FUNCTION pml_internal.pml_refers_to_trace();
CREATE TRIGGER execution_trace_refers AFTER INSERT OR UPDATE OF capability_id ON pml.execution_trace
  FOR EACH ROW WHEN (pml_internal.pml_by_hand()) EXECUTE FUNCTION pml_internal.pml_refers_to_record('capability_id');

-- pml.slots
CREATE TRIGGER slots_restore BEFORE INSERT ON pml.slots
  FOR EACH ROW WHEN (pml_internal.pml_is_restore()) EXECUTE FUNCTION pml_internal.pml_slot_restore();

-- pml.proxy_key
CREATE TRIGGER proxy_key_restore BEFORE INSERT ON pml.proxy_key
  FOR EACH ROW WHEN (pml_internal.pml_is_restore()) EXECUTE FUNCTION pml_internal.pml_proxy_key_restore();

-- pml.tokens
CREATE TRIGGER tokens_notify_change
  AFTER UPDATE OF id, token_hash, org, project, actor, expires_at, revoked_at ON pml.tokens
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_tokens_notify();
CREATE TRIGGER tokens_notify_removal AFTER DELETE ON pml.tokens
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_tokens_notify();
