-- Which capability calls which.

CREATE TABLE pml.capability_dependencies (
  from_fqdn text COLLATE "C" NOT NULL REFERENCES pml.capability_records (id),
  to_fqdn text COLLATE "C" NOT NULL REFERENCES pml.capability_records (id),
  edge_type text NOT NULL DEFAULT 'contains'
    CHECK (edge_type IN ('dependency', 'contains', 'sequence', 'provides')),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (from_fqdn, to_fqdn, edge_type)
);
CREATE INDEX capability_dependencies_to ON pml.capability_dependencies (to_fqdn);
COMMENT ON TABLE pml.capability_dependencies IS 'Edges from a capability to those that its current code calls';
COMMENT ON COLUMN pml.capability_dependencies.from_fqdn IS 'The caller';
COMMENT ON COLUMN pml.capability_dependencies.to_fqdn IS 'The called';
COMMENT ON COLUMN pml.capability_dependencies.edge_type IS 'contains: the code of one calls the other';
COMMENT ON COLUMN pml.capability_dependencies.created_at IS 'Since when';
