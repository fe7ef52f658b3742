-- Which tool's output can feed which tool's input: follows from their schemas, and is kept in step with them.

CREATE TABLE pml.provides_edges (
  org text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  from_tool text COLLATE "C" NOT NULL,
  to_tool text COLLATE "C" NOT NULL,
  coverage text NOT NULL CHECK (coverage IN ('strict', 'partial', 'optional')),
  field_mapping jsonb NOT NULL,
  PRIMARY KEY (org, project, from_tool, to_tool)
);
CREATE INDEX provides_edges_to ON pml.provides_edges (org, project, to_tool);
COMMENT ON TABLE pml.provides_edges IS 'Edges between the tools of a scope along which data can flow';
COMMENT ON COLUMN pml.provides_edges.org IS 'Organisation';
COMMENT ON COLUMN pml.provides_edges.project IS 'Project';
COMMENT ON COLUMN pml.provides_edges.from_tool IS 'The tool that gives, as server:tool';
COMMENT ON COLUMN pml.provides_edges.to_tool IS 'The tool that takes, as server:tool';
COMMENT ON COLUMN pml.provides_edges.coverage IS
  'strict: all required inputs are given; partial: some; optional: only inputs that aren''t required';
COMMENT ON COLUMN pml.provides_edges.field_mapping IS '[{fromField, toField, typeCompatible}]';

CREATE FUNCTION @extschema@.pml_provides_refresh(org text, project text, tools text[]) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  DELETE FROM pml.provides_edges e
  WHERE e.org = $1 AND e.project = $2 AND (e.from_tool = ANY ($3) OR e.to_tool = ANY ($3));
  INSERT INTO pml.provides_edges (org, project, from_tool, to_tool, coverage, field_mapping)
  SELECT $1, $2, edge ->> 'from', edge ->> 'to', edge ->> 'coverage', edge -> 'fieldMapping'
  FROM jsonb_array_elements(@extschema@.pml_provides_between(
         (SELECT coalesce(jsonb_object_agg(t.tool_id, jsonb_build_object('input', t.input_schema, 'output', t.output_schema)), '{}')
          FROM pml.tool_schema t WHERE t.org = $1 AND t.project = $2), $3)) AS edge;
  -- In the order in which calls are counted, so that the two can't wait for each other.
  PERFORM FROM pml.capability_records r
  WHERE r.org = $1 AND r.project = $2 AND r.tools_used && $3 AND r.deleted_at IS NULL ORDER BY r.id FOR NO KEY UPDATE;
  UPDATE pml.capability_records r SET structure = NULL
  WHERE r.org = $1 AND r.project = $2 AND r.tools_used && $3 AND r.deleted_at IS NULL;
END
$$;
COMMENT ON FUNCTION @extschema@.pml_provides_refresh(text, text, text[]) IS
  'Computes anew what follows from the schemas of these tools (internal)';
REVOKE EXECUTE ON FUNCTION @extschema@.pml_provides_refresh(text, text, text[]) FROM PUBLIC;

CREATE FUNCTION @extschema@.pml_provides_keep() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    PERFORM @extschema@.pml_provides_refresh(c.org, c.project, array_agg(DISTINCT c.tool_id::text))
    FROM ((SELECT t.org, t.project, t.tool_id, t.input_schema, t.output_schema FROM changed_tools t
           EXCEPT SELECT t.org, t.project, t.tool_id, t.input_schema, t.output_schema FROM old_tools t)
          UNION
          (SELECT t.org, t.project, t.tool_id, t.input_schema, t.output_schema FROM old_tools t
           EXCEPT SELECT t.org, t.project, t.tool_id, t.input_schema, t.output_schema FROM changed_tools t)) AS c
    GROUP BY c.org, c.project;
  ELSE
    PERFORM @extschema@.pml_provides_refresh(c.org, c.project, array_agg(DISTINCT c.tool_id::text))
    FROM changed_tools c GROUP BY c.org, c.project;
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION @extschema@.pml_provides_keep() IS
  'Trigger: keeps the edges between tools, and those in the structures of capabilities, in step with the tools'' schemas';

CREATE TRIGGER tool_schema_provides_insert AFTER INSERT ON pml.tool_schema
  REFERENCING NEW TABLE AS changed_tools FOR EACH STATEMENT EXECUTE FUNCTION @extschema@.pml_provides_keep();
CREATE TRIGGER tool_schema_provides_update AFTER UPDATE ON pml.tool_schema
  REFERENCING OLD TABLE AS old_tools NEW TABLE AS changed_tools
  FOR EACH STATEMENT EXECUTE FUNCTION @extschema@.pml_provides_keep();
CREATE TRIGGER tool_schema_provides_delete AFTER DELETE ON pml.tool_schema
  REFERENCING OLD TABLE AS changed_tools FOR EACH STATEMENT EXECUTE FUNCTION @extschema@.pml_provides_keep();

CREATE FUNCTION @extschema@.pml_provides(tool text DEFAULT NULL)
  RETURNS TABLE (from_tool text, to_tool text, coverage text, field_mapping jsonb,
                 provider_output_schema jsonb, consumer_input_schema jsonb)
  LANGUAGE sql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT e.from_tool, e.to_tool, e.coverage, e.field_mapping, giver.output_schema, taker.input_schema
  FROM pml.provides_edges e
  JOIN pml.tool_schema giver ON (giver.org, giver.project, giver.tool_id) = (e.org, e.project, e.from_tool)
  JOIN pml.tool_schema taker ON (taker.org, taker.project, taker.tool_id) = (e.org, e.project, e.to_tool)
  WHERE e.org = @extschema@.pml_org() AND e.project = @extschema@.pml_project()
    AND ($1 IS NULL OR $1 IN (e.from_tool, e.to_tool))
  ORDER BY e.from_tool, e.to_tool
$$;
COMMENT ON FUNCTION @extschema@.pml_provides(text) IS
  'The edges between tools of the current scope, from or to the given one, with both schemas';
