-- Wire names of tools. A name is assigned once and kept, so that it never comes to mean another tool.

CREATE TABLE pml.tool_names (
  org text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  tool_name text COLLATE "C" NOT NULL CHECK (tool_name ~ '^[a-zA-Z0-9_-]{1,64}$'),
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('capability', 'tool')),
  name text COLLATE "C" NOT NULL,
  fqdn text COLLATE "C",
  -- Neither key begins with the scope: on a table that was never analyzed the planner might pick the wrong one.
  PRIMARY KEY (tool_name, org, project),
  UNIQUE (name, kind, org, project),
  CHECK ((kind = 'capability') = (fqdn IS NOT NULL))
);
-- How code finds a capability by a spelling of its wire name, or of a name without a namespace.
CREATE INDEX tool_names_wire_spelling ON pml.tool_names
  USING hash (pml_internal.pml_scoped(org, project, pml_internal.pml_spelling(tool_name)));
CREATE INDEX tool_names_spelling ON pml.tool_names
  USING hash (pml_internal.pml_scoped(org, project, pml_internal.pml_spelling(name)));
COMMENT ON TABLE pml.tool_names IS 'The wire name of every name and alias of a capability, and of every tool; kept by triggers';
COMMENT ON COLUMN pml.tool_names.org IS 'Organisation';
COMMENT ON COLUMN pml.tool_names.project IS 'Project';
COMMENT ON COLUMN pml.tool_names.tool_name IS 'The name that MCP clients see';
COMMENT ON COLUMN pml.tool_names.kind IS 'capability, or tool for one of a real server';
COMMENT ON COLUMN pml.tool_names.name IS 'The name or alias of the capability, or server:tool';
COMMENT ON COLUMN pml.tool_names.fqdn IS 'The capability that holds the name';

CREATE FUNCTION pml_internal.pml_tool_name(name text, birth_namespace text, identity text, attempt integer) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_tool_name_wrapper';
COMMENT ON FUNCTION pml_internal.pml_tool_name(text, text, text, integer) IS
  'A wire name for a capability''s name or a server:tool; the plain one, or by further attempts one with a hash';

CREATE FUNCTION pml_internal.pml_take_tool_name(org text, project text, kind text, name text, fqdn text) RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  birth_namespace text := coalesce(split_part(fqdn, '.', 3), '');
  identity text := concat_ws(' ', kind, fqdn, name);
  taken text;
BEGIN
  -- INSERT first, because it needs no scan: a plan cached while the table was empty would use a sequential scan.
  FOR attempt IN 0..8 LOOP
    INSERT INTO pml.tool_names AS t (org, project, tool_name, kind, name, fqdn)
    VALUES (pml_take_tool_name.org, pml_take_tool_name.project,
            pml_internal.pml_tool_name(pml_take_tool_name.name, birth_namespace, identity, attempt),
            pml_take_tool_name.kind, pml_take_tool_name.name, pml_take_tool_name.fqdn)
    ON CONFLICT DO NOTHING
    RETURNING t.tool_name INTO taken;
    EXIT WHEN FOUND;
    UPDATE pml.tool_names t SET fqdn = pml_take_tool_name.fqdn
    WHERE t.org = pml_take_tool_name.org AND t.project = pml_take_tool_name.project
      AND t.kind = pml_take_tool_name.kind AND t.name = pml_take_tool_name.name
    RETURNING t.tool_name INTO taken;
    EXIT WHEN FOUND;
  END LOOP;
  IF taken IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'PM003',
      MESSAGE = format('No free tool name for ''%s'' in scope %s.%s', name, org, project), HINT = 'Use another name.';
  END IF;
  RETURN taken;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_take_tool_name(text, text, text, text, text) IS
  'The wire name of this name; assigns the first free form if it has none (internal)';

CREATE FUNCTION pml_internal.pml_claim_keep_tool_name() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'pml.name_claims'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  IF TG_OP = 'DELETE' THEN
    DELETE FROM pml.tool_names t
    WHERE t.org = OLD.org AND t.project = OLD.project AND t.kind = 'capability' AND t.name = OLD.name;
    RETURN NULL;
  END IF;
  -- A reserved name keeps its tool's name reserved with it.
  IF NEW.kind <> 'reserved' AND NEW.name NOT LIKE 'mcp:%' AND NOT pml_internal.pml_is_unnamed(NEW.name) THEN
    NEW.tool_name := pml_internal.pml_take_tool_name(NEW.org, NEW.project, 'capability', NEW.name, NEW.fqdn);
  ELSE
    NEW.tool_name := CASE WHEN TG_OP = 'UPDATE' THEN OLD.tool_name END;
  END IF;
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_claim_keep_tool_name() IS
  'Trigger: keeps the wire names of capabilities in step with claims';

CREATE FUNCTION pml_internal.pml_release_to_tool(org text, project text, tool_id text) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  place text := pml_internal.pml_scoped(org, project, pml_internal.pml_spelling(tool_id));
  former record;
BEGIN
  FOR former IN
    SELECT a.alias, a.target_fqdn
    FROM pml.tool_names n
    JOIN pml.capability_aliases a ON a.org = n.org AND a.project = n.project AND a.alias = n.name
    WHERE pml_internal.pml_scoped(n.org, n.project, pml_internal.pml_spelling(n.name)) = place AND n.kind = 'capability'
  LOOP
    -- Locks the record first, as a rename does, to avoid deadlocks.
    PERFORM FROM pml.capability_records r WHERE r.id = former.target_fqdn FOR NO KEY UPDATE;
    DELETE FROM pml.capability_aliases a
    WHERE a.org = pml_release_to_tool.org AND a.project = pml_release_to_tool.project AND a.alias = former.alias
      AND a.target_fqdn = former.target_fqdn;
  END LOOP;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_release_to_tool(text, text, text) IS
  'Releases the aliases that are the name of this tool in any spelling: an alias never stands for a tool (internal)';

CREATE FUNCTION pml_internal.pml_tool_keep_tool_name() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'pml.tool_schema'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  IF TG_WHEN = 'AFTER' THEN
    DELETE FROM pml.tool_names t
    WHERE t.org = OLD.org AND t.project = OLD.project AND t.kind = 'tool' AND t.name = OLD.tool_id
      AND NOT EXISTS (SELECT FROM pml.tool_schema s
                      WHERE s.org = OLD.org AND s.project = OLD.project AND s.tool_id = OLD.tool_id);
    RETURN NULL;
  END IF;
  IF TG_OP = 'INSERT' THEN
    -- Before the wire name is taken, which the alias may have.
    PERFORM pml_internal.pml_release_to_tool(NEW.org, NEW.project, NEW.tool_id);
  END IF;
  NEW.tool_name := pml_internal.pml_take_tool_name(NEW.org, NEW.project, 'tool', NEW.tool_id, NULL);
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_tool_keep_tool_name() IS
  'Trigger: keeps the wire names of servers'' tools in step with tool_schema';

CREATE FUNCTION pml_internal.pml_tool_name_of(fqdn text) RETURNS text
  LANGUAGE sql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT n.tool_name
  FROM pml.capability_records r
  JOIN pml.tool_names n ON n.org = r.org AND n.project = r.project AND n.kind = 'capability' AND n.name = r.display_name
  WHERE r.id = pml_tool_name_of.fqdn AND r.org = pml_internal.pml_org() AND r.project = pml_internal.pml_project()
    AND r.deleted_at IS NULL
$$;
COMMENT ON FUNCTION pml_internal.pml_tool_name_of(text) IS
  'The wire name of a named capability of the current scope';
