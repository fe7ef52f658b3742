-- One name, one owner: names, aliases and reserved names of a scope share this key, so that no two can ever be equal.

CREATE TABLE pml.name_claims (
  org text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  fqdn text COLLATE "C" NOT NULL,
  kind text NOT NULL CHECK (kind IN ('name', 'alias', 'reserved')),
  reserved_until timestamptz,
  tool_name text COLLATE "C",
  PRIMARY KEY (org, project, name),
  FOREIGN KEY (org, project, tool_name) REFERENCES pml.tool_names (org, project, tool_name) DEFERRABLE INITIALLY DEFERRED,
  CHECK ((kind = 'reserved') = (reserved_until IS NOT NULL))
);
CREATE INDEX name_claims_fqdn ON pml.name_claims (fqdn);
COMMENT ON TABLE pml.name_claims IS 'Who holds a name in a scope, as name, alias or after its deletion; kept by triggers';
COMMENT ON COLUMN pml.name_claims.org IS 'Organisation';
COMMENT ON COLUMN pml.name_claims.project IS 'Project';
COMMENT ON COLUMN pml.name_claims.name IS 'The name';
COMMENT ON COLUMN pml.name_claims.fqdn IS 'The record that holds it, or held it when it was deleted';
COMMENT ON COLUMN pml.name_claims.kind IS 'name, alias or reserved';
COMMENT ON COLUMN pml.name_claims.reserved_until IS 'When a reserved name becomes free again';

COMMENT ON COLUMN pml.name_claims.tool_name IS 'What the capability is called on the wire under this name';

CREATE TRIGGER name_claims_tool_name BEFORE INSERT OR UPDATE ON pml.name_claims
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_claim_keep_tool_name();
CREATE TRIGGER name_claims_tool_name_gone AFTER DELETE ON pml.name_claims
  FOR EACH ROW EXECUTE FUNCTION pml_internal.pml_claim_keep_tool_name();

-- The claims are restored before the records that need them, and a record without its claim can't be committed.
ALTER TABLE pml.capability_records
  ADD FOREIGN KEY (org, project, display_name) REFERENCES pml.name_claims (org, project, name)
  DEFERRABLE INITIALLY DEFERRED;

CREATE FUNCTION pml_internal.pml_free_name(org text, project text, name text) RETURNS text
  LANGUAGE plpgsql STABLE STRICT SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  candidate text;
BEGIN
  FOR suffix IN 2..99 LOOP
    candidate := left(pml_free_name.name, 124) || '_' || suffix;
    IF NOT EXISTS (SELECT FROM pml.capability_records r
                   WHERE r.org = pml_free_name.org AND r.project = pml_free_name.project
                     AND r.display_name = candidate AND r.deleted_at IS NULL)
       AND NOT EXISTS (SELECT FROM pml.capability_aliases a
                       WHERE a.org = pml_free_name.org AND a.project = pml_free_name.project AND a.alias = candidate)
    THEN
      RETURN candidate;
    END IF;
  END LOOP;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_free_name(text, text, text) IS 'A name like this one that nobody visible holds';
