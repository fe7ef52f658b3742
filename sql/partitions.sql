-- The partitions of the tables that grow (slots.sql), each a member of the extension.
DO $$
DECLARE
  ring text;
BEGIN
  FOREACH ring IN ARRAY '{execution_trace,task_results,tool_usage}'::text[] LOOP
    FOR slot IN 0..5 LOOP
      EXECUTE format('CREATE TABLE pml.%I PARTITION OF pml.%I FOR VALUES IN (%s)', ring || '_' || slot, ring, slot);
      EXECUTE format('COMMENT ON TABLE pml.%I IS %L', ring || '_' || slot, format('Slot %s of pml.%s', slot, ring));
    END LOOP;
  END LOOP;
END
$$;
