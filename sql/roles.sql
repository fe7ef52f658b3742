-- Roles belong to the cluster: they may exist already, and DROP EXTENSION leaves them.
DO $$
DECLARE
  wanted record;
BEGIN
  FOR wanted IN
    SELECT * FROM (VALUES
      ('pml_admin', 'PML: may act in any scope and sees everything'),
      ('pml_proxy', 'PML: acts for the org, project and actor that it sets'),
      ('pml_engine', 'PML: what public functions run as; row-level security binds it to whoever called'),
      ('pml_keeper', 'PML: what triggers run as that must see every row; owns no table')) AS roles (name, comment)
  LOOP
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN', wanted.name);
      EXECUTE format('COMMENT ON ROLE %I IS %L', wanted.name, wanted.comment);
    EXCEPTION WHEN duplicate_object OR unique_violation THEN
      -- Nobody may log in as these two or gain privileges through them.
      IF wanted.name IN ('pml_engine', 'pml_keeper') AND EXISTS (
           SELECT FROM pg_roles r WHERE r.rolname = wanted.name
             AND (r.rolcanlogin OR r.rolsuper OR r.rolcreaterole OR r.rolbypassrls)) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_role_specification',
          MESSAGE = format('Role "%s" exists and can log in or has attributes that it may not have', wanted.name),
          HINT = format('If nothing else uses it: DROP ROLE %I, then CREATE EXTENSION again.', wanted.name);
      END IF;
    END;
  END LOOP;
END
$$;

CREATE SCHEMA pml;
COMMENT ON SCHEMA pml IS 'PML: capabilities, their names, versions and what became of their runs';
GRANT USAGE ON SCHEMA pml TO PUBLIC;

CREATE SCHEMA pml_internal;
COMMENT ON SCHEMA pml_internal IS 'PML: what the public functions are made of; nobody but admins calls it directly';
GRANT USAGE ON SCHEMA pml_internal TO pml_engine, pml_keeper, pml_admin;
