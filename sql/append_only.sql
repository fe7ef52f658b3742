-- Append-only tables: history is never changed and a record never removed, not even by admins. So what refers to a record, and a
-- record to its version, needs no foreign key.

CREATE FUNCTION pml_internal.pml_refuse_change() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID NOT IN ('pml.capability_records'::regclass, 'pml.capability_versions'::regclass, 'pml.capability_aliases'::regclass,
                      'pml.name_claims'::regclass, 'pml.tool_names'::regclass) THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'PM007',
    MESSAGE = format('%s of table pml.%s is not allowed', TG_OP, TG_TABLE_NAME),
    HINT = TG_ARGV[0];
END
$$;
COMMENT ON FUNCTION pml_internal.pml_refuse_change() IS 'Trigger: refuses the statement';

CREATE FUNCTION pml_internal.pml_record_refuse_delete() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'pml.capability_records'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  IF pg_trigger_depth() > 1 AND pml_internal.pml_is_untouched_base(OLD) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'PM007',
    MESSAGE = format('The record of "%s" can''t be removed: its FQDN must never mean anything else', OLD.display_name),
    HINT = 'Use pml_delete, which leaves a tombstone.';
END
$$;
COMMENT ON FUNCTION pml_internal.pml_record_refuse_delete() IS 'Trigger: records are deleted with pml_delete only';
