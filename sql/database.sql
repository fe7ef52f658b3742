-- What a database must be like. The whole script is ASCII, so that any encoding gets as far as this.
DO $$
DECLARE
  taken name;
BEGIN
  IF getdatabaseencoding() <> 'UTF8' THEN
    RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
      MESSAGE = format('PML needs a database in UTF8; "%s" is in %s', current_database(), getdatabaseencoding()),
      HINT = 'Make one for it: CREATE DATABASE pml ENCODING ''UTF8'' LOCALE ''C.UTF-8'' TEMPLATE template0; and CREATE EXTENSION pml there.';
  END IF;
  SELECT n.nspname INTO taken FROM pg_namespace n
  WHERE n.nspname IN ('pml', 'pml_internal') ORDER BY n.nspname <> current_schema() LIMIT 1;
  IF taken = current_schema() THEN
    RAISE EXCEPTION USING ERRCODE = 'duplicate_schema',
      MESSAGE = format('The functions of PML can''t be in schema "%s"', taken),
      DETAIL = 'CREATE EXTENSION makes the schemas pml, for tables, and pml_internal; functions that users call go into another one.',
      HINT = format('If nothing else is in it: DROP SCHEMA %I; then CREATE EXTENSION pml SCHEMA public, or another schema.', taken);
  ELSIF taken IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'duplicate_schema',
      MESSAGE = format('Schema "%s" exists already', taken),
      DETAIL = 'CREATE EXTENSION makes the schemas pml, for tables, and pml_internal.',
      HINT = format('Rename what is there (ALTER SCHEMA %I RENAME TO ...) or drop it, then CREATE EXTENSION again.', taken);
  END IF;
END
$$;
