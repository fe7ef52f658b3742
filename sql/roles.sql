-- Roles are of the whole cluster: another database may have made them, and DROP EXTENSION leaves them.
DO $$
DECLARE
  wanted record;
BEGIN
  FOR wanted IN
    SELECT * FROM (VALUES
      ('pml_admin', 'PML: may act in any scope and sees everything'),
      ('pml_proxy', 'PML: acts for the org, project and actor that it sets')) AS roles (name, comment)
  LOOP
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN', wanted.name);
      EXECUTE format('COMMENT ON ROLE %I IS %L', wanted.name, wanted.comment);
    EXCEPTION WHEN duplicate_object OR unique_violation THEN
      NULL;
    END;
  END LOOP;
END
$$;

CREATE SCHEMA pml;
COMMENT ON SCHEMA pml IS 'PML: capabilities, their names, versions and what became of their runs';
GRANT USAGE ON SCHEMA pml TO PUBLIC;
