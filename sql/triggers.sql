-- A trigger function runs on its own table only: on another, whose columns have types of somebody's making, setting a
-- column would run that one's code with the rights of the function's owner.

CREATE FUNCTION pml_internal.pml_refuse_table(relation oid) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'PM006',
    MESSAGE = format('This trigger function is not for table %s', $1::regclass),
    HINT = 'The triggers of PML belong to the tables of schema pml.';
END
$$;
COMMENT ON FUNCTION pml_internal.pml_refuse_table(oid) IS 'The error of a trigger function on a table that is not its own';
