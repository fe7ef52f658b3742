-- The tables that grow are rings of partitions, their slots: rows are inserted into the current one, and a slot whose rows have
-- all expired is emptied at once (TRUNCATE) and used again. Nothing is deleted row by row, and nothing is created at run time.

CREATE TABLE pml.slots (
  table_name text COLLATE "C" NOT NULL CHECK (table_name IN ('execution_trace', 'task_results', 'tool_usage')),
  slot smallint NOT NULL CHECK (slot BETWEEN 0 AND 5),
  since timestamptz NOT NULL,
  PRIMARY KEY (table_name, slot)
);
COMMENT ON TABLE pml.slots IS 'The partitions in use of the tables that grow; one that isn''t here is empty. Until any is, slot 0 is in use';
COMMENT ON COLUMN pml.slots.table_name IS 'The partitioned table';
COMMENT ON COLUMN pml.slots.slot IS 'Its partition, <table_name>_<slot>';
COMMENT ON COLUMN pml.slots.since IS 'When its rows begin; they end where those of the next begin';

CREATE FUNCTION pml_internal.pml_slot(table_name text, at timestamptz DEFAULT now()) RETURNS smallint
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN coalesce(
    (SELECT s.slot FROM pml.slots s WHERE s.table_name = pml_slot.table_name AND s.since <= pml_slot.at
     ORDER BY s.since DESC LIMIT 1),
    (SELECT s.slot FROM pml.slots s WHERE s.table_name = pml_slot.table_name ORDER BY s.since LIMIT 1), 0::smallint);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_slot(text, timestamptz) IS 'The slot for rows of that time; the oldest if they are older';

-- Without settings, so that it is inlined: a batch of runs reads pml.slots once.
CREATE FUNCTION pml_internal.pml_slot_among(slots smallint[], since timestamptz[], at timestamptz) RETURNS smallint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN coalesce(slots[greatest(pg_catalog.width_bucket(at, since), 1)], 0::smallint);
COMMENT ON FUNCTION pml_internal.pml_slot_among(smallint[], timestamptz[], timestamptz) IS
  'pml_slot among these, which are ordered by their beginnings';

CREATE FUNCTION pml_internal.pml_longest_run() RETURNS interval
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN interval '26 hours';
COMMENT ON FUNCTION pml_internal.pml_longest_run() IS
  'How long after its beginning a run may be reported: a timeout is at most a day, and proxies retry a report for an hour';

-- A second report of a run must meet the trace of the first, whatever was rotated in between, so the slot of a trace follows from
-- the run's id, which has the time when a proxy made it (UUIDv7). Other ids are those of pml_begin, whose state makes pml_finish
-- idempotent; for them, and for what can't be the time of a run, it is about now.
CREATE FUNCTION pml_internal.pml_run_began(run uuid) RETURNS timestamptz
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN CASE WHEN pg_catalog.substr(run::text, 15, 1) = '7' THEN greatest(
      pg_catalog.to_timestamp(('x' || pg_catalog.substr(run::text, 1, 8) || pg_catalog.substr(run::text, 10, 4))::bit(48)::bigint
                              / 1000.0::double precision),
      pg_catalog.now() - pml_internal.pml_longest_run())
    ELSE pg_catalog.now() END;
COMMENT ON FUNCTION pml_internal.pml_run_began(uuid) IS 'When the run with this id began';

CREATE FUNCTION pml_internal.pml_kept_for(table_name text) RETURNS interval
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN CASE table_name
    -- Those of a slot began in its time; the retention is counted from when they ended.
    WHEN 'execution_trace' THEN pg_catalog.current_setting('pml.trace_retention')::interval + pml_internal.pml_longest_run()
    WHEN 'tool_usage' THEN pg_catalog.current_setting('pml.usage_retention')::interval
    WHEN 'task_results' THEN pg_catalog.current_setting('pml.result_ttl')::interval END;
COMMENT ON FUNCTION pml_internal.pml_kept_for(text) IS 'How long a slot of the table is kept after its time has ended';

CREATE FUNCTION pml_internal.pml_slot_restore() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'pml.slots'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  UPDATE pml.slots s SET since = NEW.since WHERE s.table_name = NEW.table_name AND s.slot = NEW.slot;
  RETURN CASE WHEN NOT FOUND THEN NEW END;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_slot_restore() IS
  'Trigger: a restored slot replaces the one that a proxy has begun in the meantime';
