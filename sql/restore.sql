-- Loading a dump. pg_restore -j loads the tables in any order, each in a transaction of its own, and --inserts loads a row
-- before one that it refers to. So there are no foreign keys between the tables (references.sql has what they would check),
-- and triggers that derive other rows don't fire (WHEN in triggers.sql): those rows are in the dump too.

-- Every script of pg_dump and every session of pg_restore begins with two settings: check_function_bodies = off and an empty
-- search_path. Only admins can write tables directly; what anybody else does is written by the extension's own roles, whatever
-- their settings. In C, because a trigger's WHEN, which is evaluated as the role that writes, is prepared for every statement:
-- inlining the same in SQL costs more than the check.
CREATE FUNCTION pml_internal.pml_is_restore() RETURNS boolean
  LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_is_restore_wrapper';
COMMENT ON FUNCTION pml_internal.pml_is_restore() IS 'Whether an admin''s statement comes from a dump that is being loaded';

-- The base servers are in every database; a dump has what was changed of them.
CREATE FUNCTION pml_internal.pml_is_untouched_base(stored pml.capability_records) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN stored.org = 'pml' AND stored.project = 'std' AND stored.created_by = 'pml'
    AND stored.created_at = timestamptz '2026-01-01 00:00:00+00' AND stored.updated_at = stored.created_at;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_is_untouched_base(pml.capability_records) IS
  'Whether a record is a base server as CREATE EXTENSION made it';

CREATE FUNCTION pml_internal.pml_base_of(name text) RETURNS text
  LANGUAGE sql STABLE STRICT
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.id FROM pml.capability_records r
  WHERE r.org = 'pml' AND r.project = 'std' AND r.created_by = 'pml' AND r.created_at = timestamptz '2026-01-01 00:00:00+00'
    AND 'mcp:' || r.action = pml_base_of.name
$$;
COMMENT ON FUNCTION pml_internal.pml_base_of(text) IS
  'The FQDN of the base server that CREATE EXTENSION made under this name; NULL if there is none';

CREATE FUNCTION pml_internal.pml_claim_restore() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'pml.name_claims'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  UPDATE pml.name_claims c
  SET fqdn = NEW.fqdn, kind = NEW.kind, reserved_until = NEW.reserved_until, tool_name = NEW.tool_name
  WHERE c.org = NEW.org AND c.project = NEW.project AND c.name = NEW.name
    AND c.kind = 'name' AND c.fqdn = pml_internal.pml_base_of(NEW.name);
  RETURN CASE WHEN NOT FOUND THEN NEW END;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_claim_restore() IS
  'Trigger: a restored claim on the name of a base server replaces the one that CREATE EXTENSION made';

CREATE FUNCTION pml_internal.pml_claim_keep_base() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'pml.name_claims'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  IF pml_internal.pml_base_of(OLD.name) IS NULL THEN
    RETURN OLD;
  END IF;
  UPDATE pml.name_claims c SET kind = 'reserved', reserved_until = now()
  WHERE c.org = OLD.org AND c.project = OLD.project AND c.name = OLD.name;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_claim_keep_base() IS
  'Trigger: keeps the claim on the first name of a base server, as one that has expired, for a dump can''t say that a row is gone';

CREATE FUNCTION pml_internal.pml_proxy_key_restore() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'pml.proxy_key'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  UPDATE pml.proxy_key k SET key = NEW.key;
  RETURN CASE WHEN NOT FOUND THEN NEW END;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_proxy_key_restore() IS
  'Trigger: a restored key replaces the one that a proxy has generated in the meantime';
