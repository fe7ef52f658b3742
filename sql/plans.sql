-- How what the functions ask is planned. All of it has a key.

-- A plan that was made while a table was small, and known to be so, reads it whole, and a session keeps its plans: 3,000
-- registrations in one transaction took 44 s where 30 rows had been analyzed before. Compiling a plan takes longer than
-- running it, but without statistics (see policies.sql) it looks worth it: 75 ms for pml_whois among a million, instead of 2.
DO $$
DECLARE
  asking record;
BEGIN
  FOR asking IN
    SELECT p.oid::regprocedure AS name, p.provolatile = 'v' AND l.lanname = 'plpgsql' AS changes_things
    FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
    -- A function without settings of its own is part of the query that calls it.
    WHERE p.pronamespace = '@extschema@'::regnamespace AND p.proname LIKE 'pml\_%' AND p.proconfig IS NOT NULL
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET jit = off', asking.name);
    IF asking.changes_things THEN
      EXECUTE format('ALTER FUNCTION %s SET enable_seqscan = off', asking.name);
    END IF;
  END LOOP;
END
$$;
