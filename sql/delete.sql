-- Deletion leaves a tombstone and reserves the names for pml.name_reservation.

CREATE FUNCTION pml_internal.pml_delete(spec text, force boolean DEFAULT false) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  target text := (pml_internal.pml_locate(pml_delete.spec)).fqdn;
  callers text;
  deleted boolean;
BEGIN
  IF target IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'pml_delete needs a spec',
      HINT = 'For example: SELECT pml_delete(''math:add'').';
  END IF;
  IF NOT coalesce(pml_delete.force, false) THEN
    SELECT string_agg(DISTINCT r.display_name, ', ') INTO callers
    FROM pml.capability_dependencies d JOIN pml.capability_records r ON r.id = d.from_fqdn
    WHERE d.to_fqdn = target AND d.from_fqdn <> target AND r.deleted_at IS NULL;
    IF callers IS NOT NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist',
        MESSAGE = format('Capability "%s" can''t be deleted: other capabilities depend on it', pml_delete.spec),
        DETAIL = format('It is called by: %s.', callers),
        HINT = 'Change those first, or delete it anyway with force => true.';
    END IF;
  END IF;
  PERFORM set_config('pml.force_delete', CASE WHEN pml_delete.force THEN 'on' ELSE 'off' END, true);
  UPDATE pml.capability_records r SET deleted_at = now() WHERE r.id = target;
  deleted := FOUND;
  PERFORM set_config('pml.force_delete', 'off', true);
  PERFORM pml_internal.pml_check_changed(deleted, pml_delete.spec, target);
  RETURN target;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_delete(text, boolean) IS
  'Deletes a capability: it no longer resolves, its history stays, its names are reserved for pml.name_reservation';
