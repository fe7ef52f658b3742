-- Counting: every call is a row of tool_usage, and what a capability's record says of its use follows from those rows.

CREATE FUNCTION @extschema@.pml_usage_count() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Rows of another time are restored or imported ones, counted when they were made.
  IF NOT EXISTS (SELECT FROM used_tools u WHERE u.capability_fqdn IS NOT NULL AND u.used_at = now()) THEN
    RETURN NULL;
  END IF;
  -- Always in the same order, so that no two sessions wait for each other.
  PERFORM FROM pml.capability_records r
  WHERE r.id IN (SELECT u.capability_fqdn FROM used_tools u WHERE u.used_at = now()) AND r.deleted_at IS NULL
  ORDER BY r.id FOR NO KEY UPDATE;
  UPDATE pml.capability_records r
  SET usage_count = r.usage_count + c.uses, success_count = r.success_count + c.successes,
      total_latency_ms = r.total_latency_ms + c.latency
  FROM (SELECT u.capability_fqdn, count(*) AS uses, count(*) FILTER (WHERE u.success) AS successes,
               sum(u.duration_ms) AS latency
        FROM used_tools u WHERE u.used_at = now() GROUP BY u.capability_fqdn) AS c
  WHERE r.id = c.capability_fqdn AND r.deleted_at IS NULL;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION @extschema@.pml_usage_count() IS
  'Trigger: counts calls on the records of the capabilities that were called, of other scopes too';
CREATE TRIGGER tool_usage_count AFTER INSERT ON pml.tool_usage
  REFERENCING NEW TABLE AS used_tools FOR EACH STATEMENT EXECUTE FUNCTION @extschema@.pml_usage_count();

CREATE FUNCTION @extschema@.pml_duration(milliseconds jsonb) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN pg_catalog.jsonb_typeof(milliseconds) = 'number'
              THEN least(greatest(pg_catalog.round(milliseconds::numeric), 0), 2147483647)::integer ELSE 0 END;
COMMENT ON FUNCTION @extschema@.pml_duration(jsonb) IS 'A duration as it is stored: whole milliseconds';

CREATE FUNCTION @extschema@.pml_error_text(error jsonb) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pg_catalog.left(CASE pg_catalog.jsonb_typeof(error)
    WHEN 'object' THEN coalesce(error ->> 'message', error::text) WHEN 'null' THEN NULL ELSE error #>> '{}' END, 2000);
COMMENT ON FUNCTION @extschema@.pml_error_text(jsonb) IS 'What an error says, be it text or an object with a message';

CREATE FUNCTION @extschema@.pml_tool_used(
    server text, tool text, success boolean, duration_ms integer, error text DEFAULT NULL) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  server_id text := substr(@extschema@.pml_check_server_name(pml_tool_used.server), 5);
BEGIN
  PERFORM @extschema@.pml_check_may_act(@extschema@.pml_org(), @extschema@.pml_project());
  IF coalesce(pml_tool_used.tool, '') = '' OR length(pml_tool_used.tool) > 256 OR pml_tool_used.success IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'pml_tool_used needs the tool''s name and whether the call went well',
      HINT = 'For example: SELECT pml_tool_used(''filesystem'', ''read_file'', true, 12).';
  END IF;
  INSERT INTO pml.tool_usage (org, project, actor, server_id, tool_id, success, duration_ms, error_message)
  VALUES (@extschema@.pml_org(), @extschema@.pml_project(), @extschema@.pml_actor(), server_id,
          server_id || ':' || pml_tool_used.tool, pml_tool_used.success, greatest(coalesce(pml_tool_used.duration_ms, 0), 0),
          left(pml_tool_used.error, 2000));
END
$$;
COMMENT ON FUNCTION @extschema@.pml_tool_used(text, text, boolean, integer, text) IS
  'Records a call of a server''s tool that no code made';
