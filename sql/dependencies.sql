-- Which capability calls which.

CREATE TABLE pml.capability_dependencies (
  from_fqdn text COLLATE "C" NOT NULL,
  to_fqdn text COLLATE "C" NOT NULL,
  edge_type text NOT NULL DEFAULT 'contains'
    CHECK (edge_type IN ('dependency', 'contains', 'sequence', 'provides')),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (from_fqdn, to_fqdn, edge_type)
);
CREATE INDEX capability_dependencies_to ON pml.capability_dependencies (to_fqdn);
COMMENT ON TABLE pml.capability_dependencies IS 'Edges from a capability to those that its current code calls';
COMMENT ON COLUMN pml.capability_dependencies.from_fqdn IS 'The caller';
COMMENT ON COLUMN pml.capability_dependencies.to_fqdn IS 'The callee';
COMMENT ON COLUMN pml.capability_dependencies.edge_type IS 'contains: the code of one calls the other';
COMMENT ON COLUMN pml.capability_dependencies.created_at IS 'When the edge was added';

CREATE FUNCTION pml_internal.pml_call_path(called text[], goal text) RETURNS text[]
  LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  frontier text[] := called;
  reached text[] := called;
  came_from jsonb := jsonb '{}';
  steps jsonb;
  path text[] := ARRAY[goal];
BEGIN
  -- Breadth first, each capability once: the number of paths may be exponential, that of capabilities isn't.
  WHILE frontier <> '{}' AND goal <> ALL (reached) LOOP
    SELECT coalesce(jsonb_object_agg(d.to_fqdn, d.from_fqdn), '{}') INTO steps
    FROM pml.capability_dependencies d
    WHERE d.from_fqdn = ANY (frontier) AND d.to_fqdn <> ALL (reached) AND d.edge_type = 'contains';
    came_from := came_from || steps;
    frontier := ARRAY(SELECT jsonb_object_keys(steps));
    reached := reached || frontier;
  END LOOP;
  IF goal <> ALL (reached) THEN
    RETURN NULL;
  END IF;
  WHILE path[1] <> ALL (called) LOOP
    path := (came_from ->> path[1]) || path;
  END LOOP;
  RETURN path;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_call_path(text[], text) IS
  'The shortest call path from one of the called capabilities to the goal that the current user can see; NULL if there is none';
