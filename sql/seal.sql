-- The last step of an install and of every upgrade: whose the functions are and who may call them, row-level security on
-- every table, and how what the functions ask is planned.

-- The functions that must see every row (SECURITY DEFINER) belong to a role that owns nothing else.
DO $$
DECLARE
  function record;
BEGIN
  REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA pml_internal FROM PUBLIC;
  FOR function IN
    SELECT p.oid::regprocedure AS name, p.prosecdef AS sees_all, p.prorettype = 'trigger'::regtype AS is_trigger
    FROM pg_proc p WHERE p.pronamespace = 'pml_internal'::regnamespace
  LOOP
    IF function.sees_all THEN
      EXECUTE format('ALTER FUNCTION %s OWNER TO pml_keeper', function.name);
      -- pg_restore turns it off, which makes policies errors.
      EXECUTE format('ALTER FUNCTION %s SET row_security = on', function.name);
    END IF;
    -- Triggers need no privilege to fire; with one, a function could be put on another table.
    IF NOT function.is_trigger THEN
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO pml_engine, pml_keeper, pml_admin', function.name);
    END IF;
  END LOOP;
END
$$;

-- Row-level security is the second wall: who is given a privilege on a table by mistake sees nothing.
DO $$
DECLARE
  protected regclass;
BEGIN
  FOR protected IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = 'pml'::regnamespace AND c.relkind = 'r' LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO pml_keeper, pml_admin', protected);
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', protected);
    IF NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = protected AND p.polname = 'admins') THEN
      EXECUTE format('CREATE POLICY admins ON %s TO pml_admin, pml_keeper USING (true) WITH CHECK (true)', protected);
    END IF;
  END LOOP;
END
$$;

-- What the functions ask has a key, so that no plan needs to know what is in a table.
-- A plan that was made while a table was small, and known to be so, reads it whole, and a session keeps its plans: 3,000
-- registrations in one transaction took 44 s where 30 rows had been analyzed before. Compiling a plan takes longer than
-- running it, and looked worth it: 75 ms for pml_whois among a million, instead of 2.
DO $$
DECLARE
  asking record;
BEGIN
  FOR asking IN
    SELECT p.oid::regprocedure AS name, p.provolatile <> 'i' AND l.lanname = 'plpgsql' AS keeps_plans
    FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
    -- A function without settings of its own is part of the query that calls it.
    WHERE p.pronamespace = 'pml_internal'::regnamespace AND p.proname LIKE 'pml\_%' AND p.proconfig IS NOT NULL
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET jit = off', asking.name);
    IF asking.keeps_plans THEN
      EXECUTE format('ALTER FUNCTION %s SET enable_seqscan = off', asking.name);
    END IF;
  END LOOP;
END
$$;

-- Nor may one depend on it: with statistics a table that was small when it was analyzed is read whole ever after. Only of
-- org and project one value is kept, the commonest: without any a plain SELECT by scope and name reads the whole scope.
DO $$
DECLARE
  unknown record;
BEGIN
  FOR unknown IN
    SELECT c.oid::regclass AS relation, CASE c.relkind WHEN 'r' THEN 'TABLE' ELSE 'INDEX' END AS kind,
           CASE c.relkind WHEN 'r' THEN quote_ident(a.attname) ELSE a.attnum::text END AS attribute,
           CASE WHEN c.relkind = 'r' AND a.attname IN ('org', 'project') THEN 1 ELSE 0 END AS kept
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = 'pml'::regnamespace
      -- An index has statistics of its own where it holds an expression.
      AND (c.relkind = 'r' OR c.relkind = 'i' AND (SELECT i.indkey[a.attnum - 1] = 0 FROM pg_index i WHERE i.indexrelid = c.oid))
  LOOP
    EXECUTE format('ALTER %s %s ALTER COLUMN %s SET STATISTICS %s', unknown.kind, unknown.relation, unknown.attribute, unknown.kept);
  END LOOP;
END
$$;
