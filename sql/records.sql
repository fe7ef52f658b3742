-- The record of a capability or server: its identity, which never changes, and its current state.

-- The equality prefix of the indexes that listings walk. Nobody reads others' private records to find one's own.
-- In C, because the expression of a generated column is prepared for every statement, and inlining SQL is dear.
CREATE FUNCTION pml_internal.pml_list_of(record_type text, is_unnamed boolean, visibility text, created_by text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_list_of_wrapper';
COMMENT ON FUNCTION pml_internal.pml_list_of(text, boolean, text, text) IS
  'The list of its scope that a record is in: its type, whether it has a name, and who sees it';

-- pml_resolve reads the first ten columns by their position (pml_ext/src/records.rs).
CREATE TABLE pml.capability_records (
  id text COLLATE "C" PRIMARY KEY,
  display_name text COLLATE "C" NOT NULL CHECK (pml_internal.pml_is_valid_name(display_name)),
  org text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  visibility text COLLATE "C" NOT NULL DEFAULT 'private'
    CHECK (visibility IN ('private', 'project', 'org', 'public')),
  created_by text NOT NULL,
  deleted_at timestamptz,
  version integer NOT NULL DEFAULT 1 CHECK (version > 0),
  version_tag text COLLATE "C",
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  namespace text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  hash text COLLATE "C" NOT NULL,
  code_hash text COLLATE "C" NOT NULL,
  record_type text NOT NULL DEFAULT 'capability' CHECK (record_type IN ('capability', 'mcp-server')),
  updated_by text NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  change_summary text,
  ttl integer CHECK (ttl >= 0),
  cache_policy text NOT NULL DEFAULT 'none' CHECK (cache_policy IN ('none', 'memoize', 'persistent')),
  parent_id text COLLATE "C",
  forked_from text COLLATE "C",
  verified boolean NOT NULL DEFAULT false,
  signature text,
  usage_count bigint NOT NULL DEFAULT 0 CHECK (usage_count >= 0),
  success_count bigint NOT NULL DEFAULT 0 CHECK (success_count >= 0),
  total_latency_ms bigint NOT NULL DEFAULT 0 CHECK (total_latency_ms >= 0),
  tags text[] NOT NULL DEFAULT '{}',
  code_snippet text,
  parameters_schema jsonb,
  description text,
  tools_used text[] NOT NULL DEFAULT '{}',
  routing text NOT NULL DEFAULT 'cloud' CHECK (routing IN ('local', 'cloud')),
  routing_explicit boolean NOT NULL DEFAULT false,
  code_url text,
  deleted_by text,
  source jsonb NOT NULL DEFAULT '{"type": "code"}' CHECK (source ->> 'type' IN ('code', 'dag', 'tool')),
  executable text,
  structure jsonb,
  unresolved jsonb NOT NULL DEFAULT '[]',
  capabilities_used text[] COLLATE "C" NOT NULL DEFAULT '{}',
  parameters_explicit boolean NOT NULL DEFAULT false,
  output_schema jsonb,
  output_explicit boolean NOT NULL DEFAULT false,
  search tsvector NOT NULL DEFAULT '',
  -- Which list of its scope it is in (pml_list_of); NULL if it was deleted.
  listed_in text COLLATE "C" GENERATED ALWAYS AS (CASE WHEN deleted_at IS NULL THEN
    pml_internal.pml_list_of(record_type, pml_internal.pml_is_unnamed(display_name), visibility, created_by) END) STORED,
  UNIQUE (org, project, namespace, action, hash),
  CHECK (id = org || '.' || project || '.' || namespace || '.' || action || '.' || hash),
  CHECK ((record_type = 'capability') = (code_snippet IS NOT NULL)),
  CHECK (success_count <= usage_count)
);

CREATE INDEX capability_records_scope ON pml.capability_records (org, project);
CREATE INDEX capability_records_name ON pml.capability_records (org, project, display_name);
CREATE INDEX capability_records_namespace ON pml.capability_records (namespace);
CREATE INDEX capability_records_created_by ON pml.capability_records (created_by);
CREATE INDEX capability_records_tags ON pml.capability_records USING gin (tags);
CREATE INDEX capability_records_visibility ON pml.capability_records (visibility);
CREATE INDEX capability_records_parent ON pml.capability_records (parent_id) WHERE parent_id IS NOT NULL;

-- For pml_resolve. A hash index reads one page; a btree reads three or four and compares at each level.
CREATE INDEX capability_records_scoped_name ON pml.capability_records
  USING hash (pml_internal.pml_scoped(org, project, display_name));
CREATE INDEX capability_records_fqdn ON pml.capability_records USING hash (id);
-- For deduplication. The planner can't mistake it for another index that begins with org and project, as it does with btrees
-- on a table that was never analyzed; registering would read the whole scope.
CREATE INDEX capability_records_scoped_code ON pml.capability_records
  USING hash (pml_internal.pml_scoped(org, project, code_hash));

-- Of two sessions that register the same code at once, one inserts and the other finds it. Private records of different
-- people may have the same code, since neither may learn of the other's; so may forks and later versions.
CREATE UNIQUE INDEX capability_records_same_code ON pml.capability_records
  (org, project, code_hash, (CASE WHEN visibility = 'private' THEN created_by ELSE '' END))
  WHERE record_type = 'capability' AND version = 1 AND forked_from IS NULL AND deleted_at IS NULL;

-- For listings (first_listed.sql): the lists of a scope in each order, and of what is shared beyond it. With usage_count in an
-- index no fold of a count is HOT. On a table just loaded, whose pages are full, 5 % were: 1,000 folds took 97 ms of CPU time,
-- and take 114.
CREATE INDEX capability_records_by_usage ON pml.capability_records (org, project, listed_in, usage_count DESC, display_name)
  WHERE listed_in IS NOT NULL;
CREATE INDEX capability_records_by_age ON pml.capability_records (org, project, listed_in, created_at DESC, display_name)
  WHERE listed_in IS NOT NULL;
CREATE INDEX capability_records_by_name ON pml.capability_records (org, project, listed_in, display_name)
  WHERE listed_in IS NOT NULL;
CREATE INDEX capability_records_shared_by_usage ON pml.capability_records
  (listed_in, (CASE visibility WHEN 'org' THEN org ELSE '' END), usage_count DESC, display_name, id)
  WHERE listed_in IS NOT NULL AND visibility IN ('org', 'public');
CREATE INDEX capability_records_shared_by_age ON pml.capability_records
  (listed_in, (CASE visibility WHEN 'org' THEN org ELSE '' END), created_at DESC, display_name, id)
  WHERE listed_in IS NOT NULL AND visibility IN ('org', 'public');
CREATE INDEX capability_records_shared_by_name ON pml.capability_records
  (listed_in, (CASE visibility WHEN 'org' THEN org ELSE '' END), display_name, id)
  WHERE listed_in IS NOT NULL AND visibility IN ('org', 'public');

COMMENT ON TABLE pml.capability_records IS 'A capability or MCP server: its immutable identity and its current state';
COMMENT ON COLUMN pml.capability_records.id IS 'The FQDN <org>.<project>.<namespace>.<action>.<hash>; never changes';
COMMENT ON COLUMN pml.capability_records.display_name IS 'The name people and agents use; unique in its scope, can be renamed';
COMMENT ON COLUMN pml.capability_records.org IS 'Organisation, first part of the FQDN';
COMMENT ON COLUMN pml.capability_records.project IS 'Project, second part of the FQDN';
COMMENT ON COLUMN pml.capability_records.namespace IS 'Namespace at birth, third part of the FQDN';
COMMENT ON COLUMN pml.capability_records.action IS 'Action at birth, fourth part of the FQDN';
COMMENT ON COLUMN pml.capability_records.hash IS 'Start of the hash of the code at birth, last part of the FQDN';
COMMENT ON COLUMN pml.capability_records.code_hash IS 'The whole hash (pml_code_hash) of the current code';
COMMENT ON COLUMN pml.capability_records.record_type IS 'capability or mcp-server';
COMMENT ON COLUMN pml.capability_records.created_by IS 'The actor who made it; the one who sees it when it is private';
COMMENT ON COLUMN pml.capability_records.created_at IS 'When it was made';
COMMENT ON COLUMN pml.capability_records.updated_by IS 'The actor of the last change';
COMMENT ON COLUMN pml.capability_records.updated_at IS 'The time of the last change';
COMMENT ON COLUMN pml.capability_records.version IS 'The current version, counted from 1';
COMMENT ON COLUMN pml.capability_records.version_tag IS 'The semantic version of the current version, if it has one';
COMMENT ON COLUMN pml.capability_records.change_summary IS 'Why the current version was made';
COMMENT ON COLUMN pml.capability_records.ttl IS 'For how many seconds a result may be cached';
COMMENT ON COLUMN pml.capability_records.cache_policy IS 'none, memoize or persistent';
COMMENT ON COLUMN pml.capability_records.parent_id IS 'The record this one was forked from';
COMMENT ON COLUMN pml.capability_records.forked_from IS 'FQDN of the source of a fork';
COMMENT ON COLUMN pml.capability_records.verified IS 'Tested and validated; set by admins';
COMMENT ON COLUMN pml.capability_records.signature IS 'Signature of the code; set by admins';
COMMENT ON COLUMN pml.capability_records.usage_count IS 'How often it was used (capability_usage: what was counted since)';
COMMENT ON COLUMN pml.capability_records.success_count IS 'Number of successful uses';
COMMENT ON COLUMN pml.capability_records.total_latency_ms IS 'The time of all its runs together, in milliseconds';
COMMENT ON COLUMN pml.capability_records.tags IS 'Free labels';
COMMENT ON COLUMN pml.capability_records.visibility IS 'private (the creator), project, org or public';
COMMENT ON COLUMN pml.capability_records.code_snippet IS
  'The code of the current version, with FQDNs for the capabilities it calls (pml_code shows names); NULL for a server';
COMMENT ON COLUMN pml.capability_records.parameters_schema IS 'JSON Schema of its arguments';
COMMENT ON COLUMN pml.capability_records.description IS 'What it does, in words';
COMMENT ON COLUMN pml.capability_records.tools_used IS 'The tools it calls, as server:tool';
COMMENT ON COLUMN pml.capability_records.routing IS 'local or cloud; without what it calls in other scopes, which pml_current_routing adds';
COMMENT ON COLUMN pml.capability_records.routing_explicit IS 'Whether routing was given, not inherited from the tools';
COMMENT ON COLUMN pml.capability_records.code_url IS 'Where the implementation of a server can be fetched';
COMMENT ON COLUMN pml.capability_records.deleted_at IS 'When it was deleted; the row stays as a tombstone';
COMMENT ON COLUMN pml.capability_records.deleted_by IS 'The actor who deleted it';
COMMENT ON COLUMN pml.capability_records.source IS 'What it was made from: {"type": "code"}, or the DAG or tool that its code was made from';
COMMENT ON COLUMN pml.capability_records.executable IS 'The JavaScript that runs: types stripped, calls and decisions report';
COMMENT ON COLUMN pml.capability_records.structure IS 'The static structure: nodes and edges, known before it runs';
COMMENT ON COLUMN pml.capability_records.unresolved IS 'Where its calls can''t be told before it runs';
COMMENT ON COLUMN pml.capability_records.capabilities_used IS 'The capabilities it calls, as the code does: FQDN or FQDN@version';
COMMENT ON COLUMN pml.capability_records.parameters_explicit IS 'Whether parameters_schema was given, not inferred from the code';
COMMENT ON COLUMN pml.capability_records.output_schema IS 'JSON Schema of its result, if known';
COMMENT ON COLUMN pml.capability_records.output_explicit IS 'Whether output_schema was given, not inferred from the code';
COMMENT ON COLUMN pml.capability_records.search IS 'The words by which it is found';
COMMENT ON COLUMN pml.capability_records.listed_in IS 'Which list of its scope it is in; NULL if it was deleted';

-- Callers append what they count, so that they don't wait for each other. pml_fold_usage adds it to the records.
CREATE TABLE pml.capability_usage (
  capability_fqdn text COLLATE "C" NOT NULL,
  id bigint GENERATED ALWAYS AS IDENTITY,
  uses bigint NOT NULL CHECK (uses >= 0),
  successes bigint NOT NULL CHECK (successes >= 0),
  latency_ms bigint NOT NULL CHECK (latency_ms >= 0),
  PRIMARY KEY (capability_fqdn, id)
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
COMMENT ON TABLE pml.capability_usage IS 'Uses of capabilities that their records don''t count yet';
COMMENT ON COLUMN pml.capability_usage.capability_fqdn IS 'The capability';
COMMENT ON COLUMN pml.capability_usage.id IS 'Tells rows apart';
COMMENT ON COLUMN pml.capability_usage.uses IS 'How often it was used';
COMMENT ON COLUMN pml.capability_usage.successes IS 'Number of successful uses';
COMMENT ON COLUMN pml.capability_usage.latency_ms IS 'The time of these runs together, in milliseconds';
