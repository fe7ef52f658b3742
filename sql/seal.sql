-- The last step of an install and of every upgrade: ownership and EXECUTE privileges of functions, row-level security on
-- every table, and planner settings.

-- SECURITY DEFINER functions belong to a role that owns nothing else. The owner comes before the privileges: pg_dump compares
-- these with what they were when CREATE EXTENSION set them, and would name whoever ran that.
DO $$
DECLARE
  function record;
BEGIN
  FOR function IN
    SELECT p.oid::regprocedure AS name FROM pg_proc p
    WHERE p.pronamespace = 'pml_internal'::regnamespace AND p.prosecdef
  LOOP
    EXECUTE format('ALTER FUNCTION %s OWNER TO pml_keeper', function.name);
    -- pg_restore sets it to off, which turns policies into errors.
    EXECUTE format('ALTER FUNCTION %s SET row_security = on', function.name);
  END LOOP;
  REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA pml_internal FROM PUBLIC;
  FOR function IN
    -- Triggers fire without EXECUTE; with it, anybody could attach the function to another table.
    SELECT p.oid::regprocedure AS name FROM pg_proc p
    WHERE p.pronamespace = 'pml_internal'::regnamespace AND p.prorettype <> 'trigger'::regtype
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO pml_engine, pml_keeper, pml_admin', function.name);
  END LOOP;
END
$$;

-- pg_dump reads them.
GRANT SELECT ON ALL SEQUENCES IN SCHEMA pml TO pml_admin;

-- Defence in depth: a role that is given a privilege on a table by mistake sees nothing.
DO $$
DECLARE
  protected regclass;
BEGIN
  FOR protected IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = 'pml'::regnamespace AND c.relkind IN ('r', 'p') LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO pml_keeper, pml_admin', protected);
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', protected);
    IF NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = protected AND p.polname = 'admins') THEN
      EXECUTE format('CREATE POLICY admins ON %s TO pml_admin, pml_keeper USING (true) WITH CHECK (true)', protected);
    END IF;
  END LOOP;
END
$$;

-- pml_rotate (expire.sql), which runs as pml_keeper, empties partitions. Nobody else may, but superusers.
DO $$
DECLARE
  partition regclass;
BEGIN
  FOR partition IN
    SELECT c.oid FROM pg_class c WHERE c.relnamespace = 'pml'::regnamespace AND c.relkind = 'r' AND c.relispartition
  LOOP
    EXECUTE format('GRANT TRUNCATE ON %s TO pml_keeper', partition);
  END LOOP;
END
$$;

-- The functions look rows up by key, so plans must not depend on statistics. A plan cached while a table was small uses a
-- sequential scan: 3,000 registrations in one transaction took 44 s where 30 rows had been analyzed before. JIT compilation
-- takes longer than the query: 75 ms for pml_whois among a million records, instead of 2.
DO $$
DECLARE
  asking record;
BEGIN
  FOR asking IN
    SELECT p.oid::regprocedure AS name, l.lanname = 'plpgsql' AS keeps_plans
    FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
    -- A function without settings is inlined into the query that calls it.
    WHERE p.pronamespace = 'pml_internal'::regnamespace AND p.proname LIKE 'pml\_%' AND p.proconfig IS NOT NULL
      -- Settings cost as much as a short function: not where no table is read.
      AND (l.lanname <> 'plpgsql' OR p.prosrc ~ '(FROM|JOIN|INTO|UPDATE) pml[.]')
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET jit = off', asking.name);
    IF asking.keeps_plans THEN
      EXECUTE format('ALTER FUNCTION %s SET enable_seqscan = off', asking.name);
    END IF;
  END LOOP;
END
$$;

-- No statistics, for the same reason. Only org and project keep the most common value: without it a plain SELECT by scope and
-- name reads the whole scope.
DO $$
DECLARE
  unknown record;
BEGIN
  FOR unknown IN
    SELECT c.oid::regclass AS relation, CASE WHEN c.relkind IN ('r', 'p') THEN 'TABLE' ELSE 'INDEX' END AS kind,
           CASE WHEN c.relkind IN ('r', 'p') THEN quote_ident(a.attname) ELSE a.attnum::text END AS attribute,
           CASE WHEN c.relkind IN ('r', 'p') AND a.attname IN ('org', 'project') THEN 1 ELSE 0 END AS kept
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = 'pml'::regnamespace
      -- An index has statistics of its own where it holds an expression.
      AND (c.relkind IN ('r', 'p') OR c.relkind = 'i' AND (SELECT i.indkey[a.attnum - 1] = 0 FROM pg_index i WHERE i.indexrelid = c.oid))
  LOOP
    EXECUTE format('ALTER %s %s ALTER COLUMN %s SET STATISTICS %s', unknown.kind, unknown.relation, unknown.attribute, unknown.kept);
  END LOOP;
END
$$;
