-- Locks on a scope. They are row locks, because anybody can take an advisory lock whose key is known.

CREATE TABLE pml.scope_locks (
  org text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  purpose text COLLATE "C" NOT NULL CHECK (purpose IN ('tools', 'dependencies')),
  PRIMARY KEY (org, project, purpose)
);
COMMENT ON TABLE pml.scope_locks IS 'Rows that are locked while something in a scope changes as a whole';
COMMENT ON COLUMN pml.scope_locks.org IS 'Organisation';
COMMENT ON COLUMN pml.scope_locks.project IS 'Project';
COMMENT ON COLUMN pml.scope_locks.purpose IS 'What is serialised by this lock';

CREATE FUNCTION pml_internal.pml_lock_scope(org text, project text, purpose text) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  INSERT INTO pml.scope_locks (org, project, purpose)
  VALUES (pml_lock_scope.org, pml_lock_scope.project, pml_lock_scope.purpose) ON CONFLICT DO NOTHING;
  PERFORM FROM pml.scope_locks l
  WHERE l.org = pml_lock_scope.org AND l.project = pml_lock_scope.project AND l.purpose = pml_lock_scope.purpose FOR UPDATE;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_lock_scope(text, text, text) IS
  'Waits until no other transaction has this lock, and keeps it until this one ends';
