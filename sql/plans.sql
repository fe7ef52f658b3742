-- How the functions that change things are planned.

-- All they look for has a key. But a plan that was made while a table was small, and known to be so, reads it whole, and a
-- session keeps its plans: 3,000 registrations in one transaction took 44 s where 30 rows had been analyzed before.
DO $$
DECLARE
  writing regprocedure;
BEGIN
  FOR writing IN
    SELECT p.oid FROM pg_proc p
    WHERE p.pronamespace = '@extschema@'::regnamespace AND p.proname LIKE 'pml\_%' AND p.provolatile = 'v'
      AND p.prolang = (SELECT l.oid FROM pg_language l WHERE l.lanname = 'plpgsql')
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET enable_seqscan = off', writing);
  END LOOP;
END
$$;
