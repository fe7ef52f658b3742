-- What pg_dump includes. CREATE EXTENSION makes the base servers, so only what was changed of them is dumped (restore.sql).

SELECT pg_catalog.pg_extension_config_dump('pml.capability_records',
  $$WHERE NOT (org = 'pml' AND project = 'std' AND created_by = 'pml' AND created_at = '2026-01-01 00:00:00+00'
               AND updated_at = created_at)$$);
SELECT pg_catalog.pg_extension_config_dump('pml.capability_versions',
  $$WHERE NOT (capability_fqdn LIKE 'pml.std.mcp.%' AND version = 1 AND updated_by = 'pml'
               AND updated_at = '2026-01-01 00:00:00+00')$$);
SELECT pg_catalog.pg_extension_config_dump('pml.name_claims',
  $$WHERE NOT (kind = 'name' AND fqdn IN (SELECT r.id FROM pml.capability_records r
                                          WHERE r.org = 'pml' AND r.project = 'std' AND r.created_by = 'pml'
                                            AND r.created_at = '2026-01-01 00:00:00+00' AND 'mcp:' || r.action = name))$$);
SELECT pg_catalog.pg_extension_config_dump('pml.capability_usage', '');
SELECT pg_catalog.pg_extension_config_dump('pml.capability_aliases', '');
SELECT pg_catalog.pg_extension_config_dump('pml.capability_dependencies', '');
SELECT pg_catalog.pg_extension_config_dump('pml.capability_rename_history', '');
SELECT pg_catalog.pg_extension_config_dump('pml.scope_grants', '');
SELECT pg_catalog.pg_extension_config_dump('pml.proxy_key', '');
SELECT pg_catalog.pg_extension_config_dump('pml.tokens', '');
SELECT pg_catalog.pg_extension_config_dump('pml.tool_names', '');
SELECT pg_catalog.pg_extension_config_dump('pml.tool_schema', '');
SELECT pg_catalog.pg_extension_config_dump('pml.slots', '');
-- Row by row: each call changes the same row of the catalog.
DO $$
DECLARE
  partition regclass;
BEGIN
  FOR partition IN
    SELECT c.oid FROM pg_class c WHERE c.relnamespace = 'pml'::regnamespace AND c.relispartition AND c.relkind = 'r' ORDER BY c.relname
  LOOP
    PERFORM pg_extension_config_dump(partition, '');
  END LOOP;
END
$$;
SELECT pg_catalog.pg_extension_config_dump('pml.workflow_state', '');
SELECT pg_catalog.pg_extension_config_dump('pml.capability_usage_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pml.capability_versions_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pml.capability_rename_history_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pml.tool_usage_id_seq', '');
