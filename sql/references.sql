-- What foreign keys would check, without their order of loading (restore.sql). The extension writes only rows whose references
-- exist, and what they refer to is never removed, so this is for statements that admins write by hand.

CREATE FUNCTION pml_internal.pml_by_hand() RETURNS boolean
  LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_by_hand_wrapper';
COMMENT ON FUNCTION pml_internal.pml_by_hand() IS
  'Whether an admin writes this statement, not a function of the extension or a restore';

CREATE FUNCTION pml_internal.pml_refers_to_record() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- A partition has the triggers of its table.
  ruled regclass := coalesce(pg_partition_root(TG_RELID), TG_RELID);
  missing record;
BEGIN
  IF ruled NOT IN ('pml.capability_records'::regclass, 'pml.capability_usage'::regclass, 'pml.capability_dependencies'::regclass,
                      'pml.capability_rename_history'::regclass, 'pml.tool_usage'::regclass, 'pml.execution_trace'::regclass) THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  SELECT given.place, to_jsonb(NEW) ->> given.place AS fqdn INTO missing
  FROM unnest(TG_ARGV) AS given (place)
  WHERE to_jsonb(NEW) ->> given.place IS NOT NULL
    AND NOT EXISTS (SELECT FROM pml.capability_records r WHERE r.id = to_jsonb(NEW) ->> given.place);
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'PM001',
      MESSAGE = format('Capability not found: %s', pml_internal.pml_excerpt(missing.fqdn)),
      HINT = format('Column %s of table %s has FQDNs of records; pml_resolve gives that of a name.', missing.place, (SELECT c.relname FROM pg_class c WHERE c.oid = ruled));
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_refers_to_record() IS
  'Trigger: the columns that it is given refer to records that exist';

CREATE FUNCTION pml_internal.pml_refers_to_trace() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_partition_root(TG_RELID) IS DISTINCT FROM 'pml.execution_trace'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.parent_trace_id IS NOT NULL
     AND NOT EXISTS (SELECT FROM pml.execution_trace t WHERE t.id = NEW.parent_trace_id) THEN
    RAISE EXCEPTION USING ERRCODE = 'PM001', MESSAGE = format('Trace not found: %s', NEW.parent_trace_id),
      HINT = 'A parent_trace_id is the id of the trace of the run that made this call.';
  END IF;
  IF TG_OP <> 'INSERT' AND NOT EXISTS (SELECT FROM pml.execution_trace t WHERE t.id = OLD.id)
     AND EXISTS (SELECT FROM pml.execution_trace t WHERE t.parent_trace_id = OLD.id) THEN
    RAISE EXCEPTION USING ERRCODE = 'PM007',
      MESSAGE = format('Trace %s can''t be removed: there are traces of calls that its run made', OLD.id),
      HINT = 'Remove them in the same statement, for example by their workflow_id.';
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_refers_to_trace() IS 'Trigger: the trace of a nested call has its parent';

CREATE FUNCTION pml_internal.pml_claim_guard() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  holder text;
BEGIN
  IF TG_RELID <> 'pml.name_claims'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  SELECT r.id INTO holder FROM pml.capability_records r
  WHERE r.org = OLD.org AND r.project = OLD.project AND r.display_name = OLD.name
  UNION ALL
  SELECT a.target_fqdn FROM pml.capability_aliases a
  WHERE a.org = OLD.org AND a.project = OLD.project AND a.alias = OLD.name LIMIT 1;
  IF FOUND AND (TG_OP = 'DELETE' OR (NEW.org, NEW.project, NEW.name) IS DISTINCT FROM (OLD.org, OLD.project, OLD.name)) THEN
    RAISE EXCEPTION USING ERRCODE = 'PM007',
      MESSAGE = format('The claim on the name "%s" can''t be removed: %s holds it, or held it when it was deleted', OLD.name, holder),
      HINT = 'Use pml_rename or pml_delete for a name, pml_release_alias for an alias; a reserved name is free from reserved_until on.';
  END IF;
  RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_claim_guard() IS 'Trigger: names and aliases have their claims';

CREATE FUNCTION pml_internal.pml_tool_name_guard() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'pml.tool_names'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  IF (TG_OP = 'DELETE'
      OR (NEW.org, NEW.project, NEW.tool_name) IS DISTINCT FROM (OLD.org, OLD.project, OLD.tool_name))
     AND (EXISTS (SELECT FROM pml.name_claims c
                  WHERE c.org = OLD.org AND c.project = OLD.project AND c.name = OLD.name AND c.tool_name = OLD.tool_name)
          OR EXISTS (SELECT FROM pml.tool_schema t
                     WHERE t.org = OLD.org AND t.project = OLD.project AND t.tool_id = OLD.name AND t.tool_name = OLD.tool_name)) THEN
    RAISE EXCEPTION USING ERRCODE = 'PM007',
      MESSAGE = format('The wire name "%s" can''t be removed: "%s" has it', OLD.tool_name, OLD.name),
      HINT = 'It goes with the capability''s name (pml_rename, pml_delete, pml_release_alias) or with the tool.';
  END IF;
  RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_tool_name_guard() IS 'Trigger: names and tools have their wire names';
