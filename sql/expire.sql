-- Expiry. States of runs are deleted, a few with each pml_finish; traces, calls and results go by the slot (slots.sql).

CREATE FUNCTION pml_internal.pml_forget_expired(at_most integer) RETURNS bigint
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  states bigint;
BEGIN
  -- SKIP LOCKED: rows in use are left to the next call.
  DELETE FROM pml.workflow_state d WHERE d.workflow_id IN (
    SELECT w.workflow_id FROM pml.workflow_state w WHERE w.expires_at < now()
    ORDER BY w.expires_at LIMIT at_most FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS states = ROW_COUNT;
  RETURN states;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_forget_expired(integer) IS
  'Removes expired states of runs, at most so many (NULL: all); returns how many';

CREATE FUNCTION pml_internal.pml_is_expired(table_name text, slot smallint) RETURNS boolean
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  until timestamptz := (SELECT min(n.since) FROM pml.slots s JOIN pml.slots n ON n.table_name = s.table_name AND n.since > s.since
                        WHERE s.table_name = pml_is_expired.table_name AND s.slot = pml_is_expired.slot);
BEGIN
  RETURN coalesce(until < now() - pml_internal.pml_kept_for(table_name), false)
    -- They may have been promised for longer than pml.result_ttl is now.
    AND (table_name <> 'task_results'
         OR NOT EXISTS (SELECT FROM pml.task_results r WHERE r.slot = pml_is_expired.slot AND r.expires_at >= now()));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_is_expired(text, smallint) IS 'Whether all rows of a slot are past their time; never of the newest';

CREATE FUNCTION pml_internal.pml_empty_expired_slots(table_name text) RETURNS bigint
  LANGUAGE plpgsql VOLATILE
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  expired record;
  emptied bigint := 0;
BEGIN
  FOR expired IN
    SELECT s.slot, format('pml.%I', s.table_name || '_' || s.slot)::regclass AS partition FROM pml.slots s
    WHERE s.table_name = pml_empty_expired_slots.table_name AND pml_internal.pml_is_expired(s.table_name, s.slot)
    ORDER BY s.since
  LOOP
    BEGIN
      IF pg_relation_size(expired.partition) > 0 THEN
        EXECUTE format('TRUNCATE %s', expired.partition);
      END IF;
      DELETE FROM pml.slots s WHERE s.table_name = pml_empty_expired_slots.table_name AND s.slot = expired.slot;
      emptied := emptied + 1;
    EXCEPTION WHEN lock_not_available OR object_in_use THEN
      -- Somebody reads it, perhaps pg_dump: next time.
      NULL;
    END;
  END LOOP;
  RETURN emptied;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_empty_expired_slots(text) IS
  'Empties the slots of a table of which all rows are past their time; returns how many';

CREATE FUNCTION pml_internal.pml_begin_slot(table_name text) RETURNS void
  LANGUAGE plpgsql VOLATILE
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  newest timestamptz := (SELECT max(s.since) FROM pml.slots s WHERE s.table_name = pml_begin_slot.table_name);
BEGIN
  IF newest IS NULL THEN
    -- Where everything has gone so far.
    INSERT INTO pml.slots (table_name, slot, since) VALUES (pml_begin_slot.table_name, 0, now());
  -- Four of them cover the retention, one is the current one, and one is there for when the oldest can't be emptied yet.
  ELSIF newest <= now() - pml_internal.pml_kept_for(pml_begin_slot.table_name) / 4 THEN
    INSERT INTO pml.slots (table_name, slot, since)
    -- Ahead of its time: transactions under way and clocks that are fast agree on where rows of that time go.
    SELECT pml_begin_slot.table_name, free.slot, now() + interval '5 minutes'
    FROM generate_series(0, 5) AS free (slot)
    WHERE NOT EXISTS (SELECT FROM pml.slots s WHERE s.table_name = pml_begin_slot.table_name AND s.slot = free.slot)
    ORDER BY free.slot LIMIT 1;
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_begin_slot(text) IS
  'Begins a new slot of a table if the newest has had its time; while none is free, that goes on';

CREATE FUNCTION pml_internal.pml_rotate() RETURNS bigint
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  -- While TRUNCATE waits for a reader, others wait for it.
  SET lock_timeout = '100ms'
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ring text;
  emptied bigint := 0;
BEGIN
  -- An old snapshot doesn't show what was rotated since.
  IF pg_is_in_recovery() OR current_setting('transaction_isolation') <> 'read committed' THEN
    RETURN 0;
  END IF;
  BEGIN
    LOCK TABLE pml.slots IN SHARE ROW EXCLUSIVE MODE NOWAIT;
  EXCEPTION WHEN lock_not_available THEN
    RETURN 0;
  END;
  FOREACH ring IN ARRAY '{execution_trace,task_results,tool_usage}'::text[] LOOP
    emptied := emptied + pml_internal.pml_empty_expired_slots(ring);
    PERFORM pml_internal.pml_begin_slot(ring);
  END LOOP;
  RETURN emptied;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_rotate() IS
  'Empties slots of which all rows are past their time, and begins new ones; returns how many it emptied';

CREATE FUNCTION pml_internal.pml_expire() RETURNS bigint
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pml_internal.pml_check_admin('remove expired rows');
  RETURN pml_internal.pml_forget_expired(NULL) + pml_internal.pml_rotate();
END
$$;
COMMENT ON FUNCTION pml_internal.pml_expire() IS
  'Removes all expired states of runs, and the traces, calls and results past their time (admins only, for cron); returns how many states and partitions';

CREATE FUNCTION pml_internal.pml_expire_some() RETURNS bigint
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN pml_internal.pml_forget_expired(1000) + pml_internal.pml_rotate();
END
$$;
COMMENT ON FUNCTION pml_internal.pml_expire_some() IS
  'As pml_expire, for at most 1,000 states of runs (proxies call it every minute)';
