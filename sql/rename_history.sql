-- Who renamed what, and when.

CREATE TABLE pml.capability_rename_history (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  capability_id text COLLATE "C" NOT NULL,
  old_name text COLLATE "C",
  new_name text COLLATE "C" NOT NULL,
  renamed_at timestamptz NOT NULL DEFAULT now(),
  renamed_by text
);
CREATE INDEX capability_rename_history_capability ON pml.capability_rename_history (capability_id, id);
COMMENT ON TABLE pml.capability_rename_history IS 'Every rename';
COMMENT ON COLUMN pml.capability_rename_history.id IS 'Order of the renames';
COMMENT ON COLUMN pml.capability_rename_history.capability_id IS 'FQDN of the renamed record';
COMMENT ON COLUMN pml.capability_rename_history.old_name IS 'The name before';
COMMENT ON COLUMN pml.capability_rename_history.new_name IS 'The name after';
COMMENT ON COLUMN pml.capability_rename_history.renamed_at IS 'When';
COMMENT ON COLUMN pml.capability_rename_history.renamed_by IS 'The actor';
