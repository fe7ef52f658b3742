-- One name, one owner: the names, aliases and reserved names of a scope share one unique key.

CREATE TABLE pml.name_claims (
  org text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  fqdn text COLLATE "C" NOT NULL,
  kind text NOT NULL CHECK (kind IN ('name', 'alias', 'reserved')),
  reserved_until timestamptz,
  tool_name text COLLATE "C",
  PRIMARY KEY (org, project, name),
  CHECK ((kind = 'reserved') = (reserved_until IS NOT NULL))
);
CREATE INDEX name_claims_fqdn ON pml.name_claims (fqdn);
COMMENT ON TABLE pml.name_claims IS 'Who holds a name in a scope, as name, alias or after its deletion; kept by triggers';
COMMENT ON COLUMN pml.name_claims.org IS 'Organisation';
COMMENT ON COLUMN pml.name_claims.project IS 'Project';
COMMENT ON COLUMN pml.name_claims.name IS 'The name';
COMMENT ON COLUMN pml.name_claims.fqdn IS 'The record that holds it, or held it when it was deleted';
COMMENT ON COLUMN pml.name_claims.kind IS 'name, alias or reserved';
COMMENT ON COLUMN pml.name_claims.reserved_until IS 'When a reserved name becomes free again';
COMMENT ON COLUMN pml.name_claims.tool_name IS 'What the capability is called on the wire under this name';

CREATE FUNCTION pml_internal.pml_free_name(org text, project text, name text) RETURNS text
  LANGUAGE plpgsql STABLE STRICT SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  candidate text;
BEGIN
  FOR suffix IN 2..99 LOOP
    candidate := left(pml_free_name.name, 124) || '_' || suffix;
    IF NOT EXISTS (SELECT FROM pml.capability_records r
                   WHERE r.org = pml_free_name.org AND r.project = pml_free_name.project
                     AND r.display_name = candidate AND r.deleted_at IS NULL)
       AND NOT EXISTS (SELECT FROM pml.capability_aliases a
                       WHERE a.org = pml_free_name.org AND a.project = pml_free_name.project AND a.alias = candidate)
    THEN
      RETURN candidate;
    END IF;
  END LOOP;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_free_name(text, text, text) IS 'A similar name that is free, as far as the current user can see';

CREATE FUNCTION pml_internal.pml_is_taken(name text, own_fqdn text) RETURNS boolean
  LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'pml_is_taken_wrapper';
COMMENT ON FUNCTION pml_internal.pml_is_taken(text, text) IS
  'Whether another record holds the name in the current scope, visible or not';

CREATE FUNCTION pml_internal.pml_tool_called(org text, project text, name text) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  spelled text := pml_internal.pml_spelling(name);
  here text := pml_internal.pml_scoped(org, project, spelled);
  standard text := pml_internal.pml_scoped('pml', 'std', spelled);
BEGIN
  IF strpos(name, ':') = 0 THEN
    RETURN NULL;
  END IF;
  RETURN coalesce(
    (SELECT t.tool_id FROM pml.tool_schema t
     WHERE pml_internal.pml_scoped(t.org, t.project, pml_internal.pml_spelling(t.tool_id)) = here LIMIT 1),
    (SELECT t.tool_id FROM pml.tool_schema t
     WHERE pml_internal.pml_scoped(t.org, t.project, pml_internal.pml_spelling(t.tool_id)) = standard LIMIT 1));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_tool_called(text, text, text) IS
  'The tool of this scope or of a base server that has this name in any spelling; NULL if there is none';

CREATE FUNCTION pml_internal.pml_tool_named(org text, project text, name text) RETURNS text
  LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  plain text := pml_internal.pml_plain_name(name);
BEGIN
  IF strpos(plain, ':') > 0 THEN
    RETURN pml_internal.pml_tool_called(org, project, plain);
  END IF;
  IF strpos(plain, '__') = 0 THEN
    RETURN NULL;
  END IF;
  RETURN coalesce(
    (SELECT n.name FROM pml.tool_names n
     WHERE n.tool_name = plain AND n.org = pml_tool_named.org AND n.project = pml_tool_named.project AND n.kind = 'tool'),
    pml_internal.pml_tool_called(org, project, regexp_replace(plain, '^(?:mcp__)?(.+?)__', '\1:')));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_tool_named(text, text, text) IS
  'As pml_tool_called, also for the tool''s wire name, the latter without mcp__, and names with the prefix cap:';

CREATE FUNCTION pml_internal.pml_check_name_free(org text, project text, name text, own_fqdn text) RETURNS void
  LANGUAGE plpgsql STABLE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tool text := pml_internal.pml_tool_named(org, project, name);
BEGIN
  IF tool IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'PM003',
      MESSAGE = format('Capability name ''%s'' is the name of a server''s tool in scope %s.%s', name, org, project),
      DETAIL = format('Code that calls the tool %s would get the capability.', tool),
      HINT = format('Use another name, for example "%s".', pml_internal.pml_free_name(org, project, name));
  END IF;
  PERFORM pml_internal.pml_check_name_untaken(org, project, name, own_fqdn);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_name_free(text, text, text, text) IS
  'An error if a capability can''t be given this name: a tool has it, or another capability as far as the current user may know';

CREATE FUNCTION pml_internal.pml_check_name_untaken(org text, project text, name text, own_fqdn text) RETURNS void
  LANGUAGE plpgsql STABLE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  place text := pml_internal.pml_scoped(org, project, name);
  holder text;
BEGIN
  -- Fast path: nobody holds it.
  IF org = pml_internal.pml_org() AND project = pml_internal.pml_project() AND NOT pml_internal.pml_is_taken(name, own_fqdn) THEN
    RETURN;
  END IF;
  SELECT r.display_name INTO holder
  FROM pml.capability_records r
  WHERE r.id = (SELECT a.target_fqdn FROM pml.capability_aliases a
                WHERE pml_internal.pml_scoped(a.org, a.project, a.alias) = place)
    AND r.id IS DISTINCT FROM own_fqdn;
  IF FOUND THEN
    PERFORM pml_internal.pml_name_taken(org, project, name,
      format('Use another name, for example "%s"%s.', pml_internal.pml_free_name(org, project, name),
             pml_internal.pml_hint(format(', or free it: SELECT pml_release_alias(''%s'')', name), '')),
      format('It is an alias of "%s".', holder));
  END IF;
  PERFORM FROM pml.capability_records r
  WHERE pml_internal.pml_scoped(r.org, r.project, r.display_name) = place
    AND r.deleted_at IS NULL AND r.id IS DISTINCT FROM own_fqdn;
  IF FOUND THEN
    PERFORM pml_internal.pml_name_taken(org, project, name,
      format('Use another name, for example "%s"%s.', pml_internal.pml_free_name(org, project, name),
             pml_internal.pml_hint(', or change the existing one with pml_update', '')));
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_name_untaken(text, text, text, text) IS
  'An error that says who holds the name, as far as the current user may know';

CREATE FUNCTION pml_internal.pml_claim_name(org text, project text, name text, fqdn text, kind text) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  reserved timestamptz;
BEGIN
  INSERT INTO pml.name_claims AS c (org, project, name, fqdn, kind)
  VALUES (pml_claim_name.org, pml_claim_name.project, pml_claim_name.name, pml_claim_name.fqdn, pml_claim_name.kind)
  ON CONFLICT (org, project, name) DO UPDATE
    SET fqdn = excluded.fqdn, kind = excluded.kind, reserved_until = NULL
    WHERE c.fqdn = excluded.fqdn OR c.reserved_until <= now();
  IF FOUND THEN
    RETURN;
  END IF;
  SELECT c.reserved_until INTO reserved FROM pml.name_claims c
  WHERE c.org = pml_claim_name.org AND c.project = pml_claim_name.project AND c.name = pml_claim_name.name;
  IF reserved IS NULL THEN
    PERFORM pml_internal.pml_name_taken(org, project, name);
  ELSE
    RAISE EXCEPTION USING ERRCODE = 'PM003',
      MESSAGE = format('Capability name ''%s'' is reserved in scope %s.%s', name, org, project),
      DETAIL = format('A capability of this name was deleted; the name is free from %s on.', reserved),
      HINT = 'Use another name until then.';
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_claim_name(text, text, text, text, text) IS
  'Takes a name for a record, or fails if another holds it (internal)';
