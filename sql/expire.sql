-- Expiry: each pml_finish removes a few expired rows, so that no cron job is needed.

CREATE FUNCTION pml_internal.pml_forget_expired(at_most integer) RETURNS bigint
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  states bigint;
  results bigint;
BEGIN
  -- SKIP LOCKED: rows in use are left to the next call.
  DELETE FROM pml.workflow_state d WHERE d.workflow_id IN (
    SELECT w.workflow_id FROM pml.workflow_state w WHERE w.expires_at < now()
    ORDER BY w.expires_at LIMIT at_most FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS states = ROW_COUNT;
  DELETE FROM pml.task_results d WHERE (d.workflow_id, d.task_id) IN (
    SELECT t.workflow_id, t.task_id FROM pml.task_results t WHERE t.expires_at < now()
    ORDER BY t.expires_at LIMIT at_most FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS results = ROW_COUNT;
  RETURN states + results;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_forget_expired(integer) IS
  'Removes expired states and results of runs, at most so many of each (NULL: all); returns how many';

CREATE FUNCTION pml_internal.pml_expire() RETURNS bigint
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pml_internal.pml_check_admin('remove expired rows');
  RETURN pml_internal.pml_forget_expired(NULL);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_expire() IS
  'Removes all expired states and results of runs (admins only, for cron); returns how many';
