-- Old names that still work. An alias points at an FQDN, never at a name, so there are no chains.

CREATE TABLE pml.capability_aliases (
  alias text COLLATE "C" NOT NULL CHECK (pml_internal.pml_is_valid_name(alias)),
  org text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  target_fqdn text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org, project, alias)
);
CREATE INDEX capability_aliases_target ON pml.capability_aliases (target_fqdn);
-- How pml_resolve finds it.
CREATE INDEX capability_aliases_scoped_name ON pml.capability_aliases
  USING hash (pml_internal.pml_scoped(org, project, alias));
COMMENT ON TABLE pml.capability_aliases IS 'Former names of capabilities, which still resolve';
COMMENT ON COLUMN pml.capability_aliases.alias IS 'The former name';
COMMENT ON COLUMN pml.capability_aliases.org IS 'Organisation of the scope in which it resolves';
COMMENT ON COLUMN pml.capability_aliases.project IS 'Project of that scope';
COMMENT ON COLUMN pml.capability_aliases.target_fqdn IS 'The record it stands for';
COMMENT ON COLUMN pml.capability_aliases.created_at IS 'When the name was given up';
