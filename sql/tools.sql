-- The tools of MCP servers: what they take and give, and how often they are used.

CREATE FUNCTION pml_internal.pml_is_defined_so(
    definition json, name text, description text, input_schema jsonb, output_schema jsonb) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN definition IS NULL
    OR (definition ->> 'name', definition ->> 'description') IS NOT DISTINCT FROM (name, description)
       AND coalesce(nullif((definition -> 'inputSchema')::jsonb, 'null'), '{"type": "object"}') = input_schema
       AND nullif((definition -> 'outputSchema')::jsonb, 'null') IS NOT DISTINCT FROM output_schema;
COMMENT ON FUNCTION pml_internal.pml_is_defined_so(json, text, text, jsonb, jsonb) IS
  'Whether a tool''s definition, if there is one, says the same as these columns';

CREATE TABLE pml.tool_schema (
  org text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  tool_id text COLLATE "C" NOT NULL,
  server_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  description text,
  input_schema jsonb NOT NULL DEFAULT '{"type": "object"}',
  output_schema jsonb,
  definition json,
  cached_at timestamptz NOT NULL DEFAULT now(),
  tool_name text COLLATE "C" NOT NULL,
  search tsvector NOT NULL DEFAULT '',
  PRIMARY KEY (org, project, tool_id),
  CONSTRAINT tool_schema_definition CHECK (
    pml_internal.pml_is_defined_so(definition, name, description, input_schema, output_schema))
);
-- For lookup of a tool by any spelling of its name.
CREATE INDEX tool_schema_scoped_name ON pml.tool_schema
  USING hash (pml_internal.pml_scoped(org, project, pml_internal.pml_spelling(tool_id)));
COMMENT ON TABLE pml.tool_schema IS 'The tools of the MCP servers of a scope';
COMMENT ON COLUMN pml.tool_schema.org IS 'Organisation';
COMMENT ON COLUMN pml.tool_schema.project IS 'Project';
COMMENT ON COLUMN pml.tool_schema.tool_id IS 'server:tool';
COMMENT ON COLUMN pml.tool_schema.server_id IS 'The server';
COMMENT ON COLUMN pml.tool_schema.name IS 'The tool''s own name';
COMMENT ON COLUMN pml.tool_schema.description IS 'What it does, as the server says';
COMMENT ON COLUMN pml.tool_schema.input_schema IS 'JSON Schema of its arguments';
COMMENT ON COLUMN pml.tool_schema.output_schema IS 'JSON Schema of its result, if the server gives one';
COMMENT ON COLUMN pml.tool_schema.definition IS
  'The whole tool as the server lists it, which is what clients see; NULL if it was registered by itself';
COMMENT ON COLUMN pml.tool_schema.cached_at IS 'When the server last listed it';
COMMENT ON COLUMN pml.tool_schema.tool_name IS 'What it is called on the wire';
COMMENT ON COLUMN pml.tool_schema.search IS 'The words by which it is found';

CREATE TABLE pml.tool_usage (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  actor text NOT NULL,
  server_id text NOT NULL,
  tool_id text NOT NULL,
  capability_fqdn text COLLATE "C",
  success boolean NOT NULL,
  duration_ms integer NOT NULL CHECK (duration_ms >= 0),
  error_message text,
  used_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX tool_usage_scope ON pml.tool_usage (org, project, used_at);
CREATE INDEX tool_usage_capability ON pml.tool_usage (capability_fqdn) WHERE capability_fqdn IS NOT NULL;
COMMENT ON TABLE pml.tool_usage IS 'Every call of a tool or capability';
COMMENT ON COLUMN pml.tool_usage.id IS 'Order of the calls';
COMMENT ON COLUMN pml.tool_usage.org IS 'Organisation';
COMMENT ON COLUMN pml.tool_usage.project IS 'Project';
COMMENT ON COLUMN pml.tool_usage.actor IS 'The actor that made the call';
COMMENT ON COLUMN pml.tool_usage.server_id IS 'The server; pml-capabilities for capabilities';
COMMENT ON COLUMN pml.tool_usage.tool_id IS 'The tool or capability, by the name that was called';
COMMENT ON COLUMN pml.tool_usage.capability_fqdn IS 'The capability, if it was one';
COMMENT ON COLUMN pml.tool_usage.success IS 'Whether it succeeded';
COMMENT ON COLUMN pml.tool_usage.duration_ms IS 'How long it took, in milliseconds';
COMMENT ON COLUMN pml.tool_usage.error_message IS 'What went wrong';
COMMENT ON COLUMN pml.tool_usage.used_at IS 'When it was called';

CREATE FUNCTION pml_internal.pml_tool_guard() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  problem text;
BEGIN
  IF TG_RELID <> 'pml.tool_schema'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  PERFORM pml_internal.pml_check_part('org', NEW.org), pml_internal.pml_check_part('project', NEW.project),
          pml_internal.pml_check_part('server name', NEW.server_id);
  problem := CASE
    WHEN NEW.tool_id IS DISTINCT FROM NEW.server_id || ':' || NEW.name THEN 'its tool_id must be its server_id, a colon and its name'
    WHEN jsonb_typeof(NEW.input_schema) <> 'object' THEN 'its input schema must be an object'
    WHEN jsonb_typeof(NEW.output_schema) <> 'object' THEN 'its output schema must be an object'
    ELSE coalesce(pml_internal.pml_json_problem(NEW.input_schema::text), pml_internal.pml_json_problem(NEW.output_schema::text),
                  pml_internal.pml_json_problem(NEW.definition::text)) END;
  IF problem IS NULL AND NOT pml_internal.pml_is_defined_so(
       NEW.definition, NEW.name, NEW.description, NEW.input_schema, NEW.output_schema) THEN
    problem := 'its definition says otherwise than its other columns';
  END IF;
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('Invalid tool "%s": %s', pml_internal.pml_excerpt(NEW.tool_id), problem),
      HINT = 'Use pml_register_tools, or pml_register_tool for one.';
  END IF;
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_tool_guard() IS 'Trigger: rejects invalid tools';

CREATE FUNCTION pml_internal.pml_tools_notify() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID NOT IN ('pml.tool_schema'::regclass, 'pml.capability_records'::regclass) THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  IF TG_OP <> 'INSERT' THEN
    PERFORM pg_notify('pml_tools_changed', OLD.org || '.' || OLD.project);
  END IF;
  IF TG_OP <> 'DELETE' THEN
    PERFORM pg_notify('pml_tools_changed', NEW.org || '.' || NEW.project);
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_tools_notify() IS 'Trigger: tells listeners that a scope''s tools have changed';
