-- All versions, including the current one; append-only.

CREATE TABLE pml.capability_versions (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  capability_fqdn text COLLATE "C" NOT NULL,
  version integer NOT NULL CHECK (version > 0),
  version_tag text COLLATE "C",
  version_key text COLLATE "C" GENERATED ALWAYS AS (pml_internal.pml_version_key(version_tag)) STORED,
  code_snippet text,
  code_hash text COLLATE "C" NOT NULL,
  parameters_schema jsonb,
  code_url text,
  source jsonb NOT NULL DEFAULT '{"type": "code"}',
  executable text,
  structure jsonb,
  unresolved jsonb NOT NULL DEFAULT '[]',
  tools_used text[] NOT NULL DEFAULT '{}',
  capabilities_used text[] COLLATE "C" NOT NULL DEFAULT '{}',
  parameters_explicit boolean NOT NULL DEFAULT false,
  output_schema jsonb,
  output_explicit boolean NOT NULL DEFAULT false,
  updated_by text NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  change_summary text,
  UNIQUE (capability_fqdn, version),
  UNIQUE (capability_fqdn, version_tag)
);
CREATE INDEX capability_versions_key ON pml.capability_versions (capability_fqdn, version_key, version)
  WHERE version_tag IS NOT NULL;
CREATE INDEX capability_versions_time ON pml.capability_versions (capability_fqdn, updated_at, version);
-- How pml_resolve finds a tag.
CREATE INDEX capability_versions_tag ON pml.capability_versions USING hash ((capability_fqdn || '@' || version_tag))
  WHERE version_tag IS NOT NULL;

COMMENT ON TABLE pml.capability_versions IS 'All versions of all capabilities; append-only';
COMMENT ON COLUMN pml.capability_versions.id IS 'Order of creation';
COMMENT ON COLUMN pml.capability_versions.capability_fqdn IS 'The record whose version this is';
COMMENT ON COLUMN pml.capability_versions.version IS 'Counted from 1 for each record';
COMMENT ON COLUMN pml.capability_versions.version_tag IS 'Semantic version (v1.2.0), unique in a record';
COMMENT ON COLUMN pml.capability_versions.version_key IS 'Orders tags by precedence';
COMMENT ON COLUMN pml.capability_versions.code_snippet IS 'The code of this version; NULL for a server';
COMMENT ON COLUMN pml.capability_versions.code_hash IS 'Its whole hash';
COMMENT ON COLUMN pml.capability_versions.parameters_schema IS 'JSON Schema of its arguments';
COMMENT ON COLUMN pml.capability_versions.code_url IS 'Where this version of a server can be fetched';
COMMENT ON COLUMN pml.capability_versions.source IS 'What this version was made from';
COMMENT ON COLUMN pml.capability_versions.executable IS 'The JavaScript that runs';
COMMENT ON COLUMN pml.capability_versions.structure IS 'The static structure, as it was known when the version was made';
COMMENT ON COLUMN pml.capability_versions.unresolved IS 'Where its calls can''t be told before it runs';
COMMENT ON COLUMN pml.capability_versions.tools_used IS 'The tools it calls, as server:tool';
COMMENT ON COLUMN pml.capability_versions.capabilities_used IS 'The capabilities it calls, as the code does: FQDN or FQDN@version';
COMMENT ON COLUMN pml.capability_versions.parameters_explicit IS 'Whether parameters_schema was given, not inferred';
COMMENT ON COLUMN pml.capability_versions.output_schema IS 'JSON Schema of its result, if known';
COMMENT ON COLUMN pml.capability_versions.output_explicit IS 'Whether output_schema was given, not inferred';
COMMENT ON COLUMN pml.capability_versions.updated_by IS 'The actor who made it';
COMMENT ON COLUMN pml.capability_versions.updated_at IS 'When it became the current one';
COMMENT ON COLUMN pml.capability_versions.change_summary IS 'Why it was made';

CREATE FUNCTION pml_internal.pml_check_tag_free(fqdn text, name text, tag text) RETURNS void
  LANGUAGE plpgsql STABLE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM pml.capability_versions v WHERE v.capability_fqdn = fqdn AND v.version_tag = tag) THEN
    RAISE EXCEPTION USING ERRCODE = 'PM003',
      MESSAGE = format('Version tag %s already exists for %s', tag, name),
      HINT = 'A tag names one version for ever. Use the next one.';
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_tag_free(text, text, text) IS 'An error if a version of this record has the tag';
