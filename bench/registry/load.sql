-- :count capabilities, every tenth with an alias, three versions each. Triggers are off: rows are written as they would be.
SET session_replication_role = replica;
SET synchronous_commit = off;
INSERT INTO pml.capability_records
  (id, display_name, org, project, visibility, created_by, version, namespace, action, hash, code_hash, updated_by,
   version_tag, code_snippet, created_at)
SELECT 'local.default.ns.cap_' || i || '.abcd', 'cap_' || i, 'local', 'default', 'project', 'bench', 3, 'ns',
       'cap_' || i, 'abcd', md5(i::text), 'bench', 'v1.2.0', 'return ' || i,
       '2026-01-02'
FROM generate_series(1, :count) AS i;
INSERT INTO pml.name_claims (org, project, name, fqdn, kind)
SELECT 'local', 'default', 'cap_' || i, 'local.default.ns.cap_' || i || '.abcd', 'name'
FROM generate_series(1, :count) AS i;
INSERT INTO pml.capability_versions
  (capability_fqdn, version, version_tag, code_snippet, code_hash, updated_by, updated_at)
SELECT 'local.default.ns.cap_' || i || '.abcd', v, 'v1.' || v - 1 || '.0', 'return ' || i, md5(i::text), 'bench',
       '2026-01-01'::timestamptz + v * interval '1 day'
FROM generate_series(1, :count) AS i, generate_series(1, 3) AS v;
INSERT INTO pml.name_claims (org, project, name, fqdn, kind)
SELECT 'local', 'default', 'old_' || i, 'local.default.ns.cap_' || i || '.abcd', 'alias'
FROM generate_series(1, :count, 10) AS i;
INSERT INTO pml.capability_aliases (alias, org, project, target_fqdn)
SELECT 'old_' || i, 'local', 'default', 'local.default.ns.cap_' || i || '.abcd'
FROM generate_series(1, :count, 10) AS i;
VACUUM ANALYZE;
CHECKPOINT;
