-- What follows from a change of a record: claims, versions, aliases, history, notification. SECURITY DEFINER, because they
-- must see names that the writer can't; their errors reveal nothing about those.

CREATE FUNCTION pml_internal.pml_record_identify() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- Computed only if 64 characters don't suffice: many private records of the same code.
  whole_hash text;
BEGIN
  IF TG_RELID <> 'pml.capability_records'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  IF NEW.id IS NOT NULL THEN
    -- A restored base server replaces the untouched one that CREATE EXTENSION made.
    DELETE FROM pml.capability_records r
    WHERE r.id = NEW.id AND pml_internal.pml_is_untouched_base(r);
    RETURN NEW;
  END IF;
  FOR length IN 4..1024 LOOP
    IF length > 64 AND NEW.code_snippet IS NOT NULL THEN
      whole_hash := coalesce(whole_hash, pml_internal.pml_long_code_hash(NEW.code_snippet));
    END IF;
    NEW.hash := left(coalesce(whole_hash, NEW.code_hash), length);
    NEW.id := concat_ws('.', NEW.org, NEW.project, NEW.namespace, NEW.action, NEW.hash);
    EXIT WHEN NOT EXISTS (SELECT FROM pml.capability_records r WHERE r.id = NEW.id);
    IF length = 1024 THEN
      RAISE EXCEPTION USING ERRCODE = 'PM003',
        MESSAGE = format('Too many capabilities of the same code under %s.%s.%s.%s',
                         NEW.org, NEW.project, NEW.namespace, NEW.action),
        HINT = 'Give it another name, or make one of them visible to the project.';
    END IF;
  END LOOP;
  IF NEW.display_name IS NULL THEN
    FOR length IN 8..120 LOOP
      IF length > 64 THEN
        whole_hash := coalesce(whole_hash, pml_internal.pml_long_code_hash(NEW.code_snippet));
      END IF;
      NEW.display_name := 'unnamed_' || left(coalesce(whole_hash, NEW.code_hash), length);
      EXIT WHEN NOT EXISTS (SELECT FROM pml.name_claims c
                            WHERE c.org = NEW.org AND c.project = NEW.project AND c.name = NEW.display_name);
    END LOOP;
  END IF;
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_record_identify() IS 'Trigger: gives a new record the shortest FQDN that is free';

CREATE FUNCTION pml_internal.pml_keep_dependencies(caller pml.capability_records) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  called text[] := ARRAY(SELECT DISTINCT split_part(key, '@', 1) FROM unnest(caller.capabilities_used) AS key);
  circle text[];
BEGIN
  -- Serialises concurrent changes that could form a cycle together. Only within the scope, so that nobody can block another;
  -- a cycle through two scopes ends at the limit of nested calls.
  PERFORM pml_internal.pml_lock_scope(caller.org, caller.project, 'dependencies');
  circle := pml_internal.pml_call_path(called, caller.id);
  IF circle IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'PM005',
      MESSAGE = 'Invalid code: capabilities would call each other in a cycle: ' || (
        SELECT string_agg(
                 CASE WHEN pml_internal.pml_visible(r.org, r.project, r.visibility, r.created_by)
                      THEN r.display_name ELSE '(one that you can''t see)' END, E' \u2192 ' ORDER BY step.place)
        FROM unnest(caller.id || circle) WITH ORDINALITY AS step (fqdn, place)
        JOIN pml.capability_records r ON r.id = step.fqdn),
      HINT = 'Remove one of these calls.';
  END IF;
  DELETE FROM pml.capability_dependencies d
  WHERE d.from_fqdn = caller.id AND d.edge_type = 'contains' AND d.to_fqdn <> ALL (called);
  INSERT INTO pml.capability_dependencies (from_fqdn, to_fqdn, edge_type)
  SELECT caller.id, r.id, 'contains' FROM pml.capability_records r
  -- No dependency on what the writer can't see: it would keep the owner from deleting it.
  WHERE r.id = ANY (called) AND pml_internal.pml_visible(r.org, r.project, r.visibility, r.created_by)
  ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_keep_dependencies(pml.capability_records) IS
  'Replaces the dependencies of a record by those of its code, or fails if they would form a cycle (internal)';

CREATE FUNCTION pml_internal.pml_record_keep() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  is_new boolean := TG_OP = 'INSERT';
BEGIN
  IF TG_RELID <> 'pml.capability_records'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  IF is_new AND NEW.deleted_at IS NULL THEN
    PERFORM pml_internal.pml_claim_name(NEW.org, NEW.project, NEW.display_name, NEW.id, 'name');
  ELSIF NOT is_new AND NEW.display_name <> OLD.display_name THEN
    PERFORM pml_internal.pml_claim_name(NEW.org, NEW.project, NEW.display_name, NEW.id, 'name');
    DELETE FROM pml.capability_aliases a
    WHERE a.org = NEW.org AND a.project = NEW.project AND a.alias = NEW.display_name AND a.target_fqdn = NEW.id;
    IF pml_internal.pml_tool_called(NEW.org, NEW.project, OLD.display_name) IS NULL THEN
      INSERT INTO pml.capability_aliases (org, project, alias, target_fqdn)
      VALUES (NEW.org, NEW.project, OLD.display_name, NEW.id);
    ELSE
      -- An alias never stands for a tool: the name is released to it.
      DELETE FROM pml.name_claims c
      WHERE c.org = NEW.org AND c.project = NEW.project AND c.name = OLD.display_name AND c.fqdn = NEW.id;
    END IF;
    INSERT INTO pml.capability_rename_history (capability_id, old_name, new_name, renamed_by)
    VALUES (NEW.id, OLD.display_name, NEW.display_name, NEW.updated_by);
  END IF;

  IF is_new OR NEW.version <> OLD.version THEN
    INSERT INTO pml.capability_versions
      (capability_fqdn, version, version_tag, code_snippet, code_hash, parameters_schema, parameters_explicit,
       output_schema, output_explicit, code_url, source, executable, structure, unresolved, tools_used,
       capabilities_used, updated_by, updated_at, change_summary)
    VALUES
      (NEW.id, NEW.version, NEW.version_tag, NEW.code_snippet, NEW.code_hash, NEW.parameters_schema,
       NEW.parameters_explicit, NEW.output_schema, NEW.output_explicit, NEW.code_url, NEW.source, NEW.executable,
       NEW.structure, NEW.unresolved, NEW.tools_used, NEW.capabilities_used, NEW.updated_by, NEW.updated_at,
       NEW.change_summary)
    ON CONFLICT (capability_fqdn, version) DO NOTHING;
    IF FOUND AND (is_new AND NEW.capabilities_used <> '{}' OR NOT is_new AND NEW.capabilities_used <> OLD.capabilities_used) THEN
      PERFORM pml_internal.pml_keep_dependencies(NEW);
    END IF;
  END IF;
  IF NOT is_new AND (NEW.parameters_schema, NEW.output_schema) IS DISTINCT FROM (OLD.parameters_schema, OLD.output_schema) THEN
    UPDATE pml.capability_records r SET structure = NULL
    FROM pml.capability_dependencies d
    -- Those of other scopes are computed when they are read (pml_current_structure): a change here must not lock rows there.
    WHERE d.to_fqdn = NEW.id AND r.id = d.from_fqdn AND r.id <> NEW.id AND r.deleted_at IS NULL
      AND (r.org, r.project) = (NEW.org, NEW.project);
  END IF;

  IF NEW.record_type = 'mcp-server' THEN
    IF is_new OR (NEW.routing, NEW.display_name, NEW.visibility, NEW.deleted_at)
                 IS DISTINCT FROM (OLD.routing, OLD.display_name, OLD.visibility, OLD.deleted_at) THEN
      PERFORM pml_internal.pml_follow_routing(NEW, CASE WHEN NOT is_new THEN OLD.display_name END);
    END IF;
  -- A record whose routing is being recomputed is part of such a walk already.
  ELSIF NOT is_new AND NEW.routing <> OLD.routing AND
        (NEW.routing_explicit OR (NEW.routing_explicit, NEW.tools_used, NEW.capabilities_used)
                                 IS DISTINCT FROM (OLD.routing_explicit, OLD.tools_used, OLD.capabilities_used)) THEN
    PERFORM pml_internal.pml_follow_routing(NEW, NULL);
  END IF;

  IF NOT is_new AND NEW.deleted_at IS NOT NULL THEN
    IF current_setting('pml.force_delete') <> 'on' AND EXISTS (
         SELECT FROM pml.capability_dependencies d JOIN pml.capability_records r ON r.id = d.from_fqdn
         WHERE d.to_fqdn = NEW.id AND d.from_fqdn <> NEW.id AND r.deleted_at IS NULL) THEN
      RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist',
        MESSAGE = format('Capability "%s" can''t be deleted: other capabilities depend on it', NEW.display_name),
        HINT = 'See pml_dependents, or delete it anyway with force => true.';
    END IF;
    DELETE FROM pml.capability_aliases a WHERE a.target_fqdn = NEW.id;
    UPDATE pml.name_claims c SET kind = 'reserved', reserved_until = NEW.deleted_at + current_setting('pml.name_reservation')::interval
    WHERE c.fqdn = NEW.id;
  END IF;

  -- What tool lists or the plans of calls are made of.
  IF NEW.record_type = 'capability' AND (
       is_new AND NOT pml_internal.pml_is_unnamed(NEW.display_name)
       OR NOT is_new AND (NEW.display_name, NEW.description, NEW.parameters_schema, NEW.parameters_explicit, NEW.version,
                          NEW.visibility, NEW.deleted_at)
          IS DISTINCT FROM (OLD.display_name, OLD.description, OLD.parameters_schema, OLD.parameters_explicit, OLD.version,
                            OLD.visibility, OLD.deleted_at)) THEN
    PERFORM pg_notify('pml_tools_changed', NEW.org || '.' || NEW.project);
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_record_keep() IS
  'Trigger: keeps claims, versions, aliases and history in step with a record, and notifies';

CREATE FUNCTION pml_internal.pml_alias_guard() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'pml.capability_aliases'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  IF NOT pml_internal.pml_is_valid_name(NEW.alias) THEN
    PERFORM pml_internal.pml_check_name(NEW.alias);
  END IF;
  IF NOT EXISTS (SELECT FROM pml.capability_records r WHERE r.id = NEW.target_fqdn) THEN
    PERFORM pml_internal.pml_refuse_alias(NEW);
  END IF;
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_alias_guard() IS 'Trigger: an alias is a valid name of a record that exists';

CREATE FUNCTION pml_internal.pml_refuse_alias(refused pml.capability_aliases) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'PM004',
    MESSAGE = format('"%s" can''t be an alias of %s', refused.alias, refused.target_fqdn),
    HINT = 'An alias is another name of a live capability in the same scope.';
END
$$;
COMMENT ON FUNCTION pml_internal.pml_refuse_alias(pml.capability_aliases) IS 'The error for an invalid alias';

CREATE FUNCTION pml_internal.pml_alias_keep() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  target record;
BEGIN
  IF TG_RELID <> 'pml.capability_aliases'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  IF TG_OP = 'DELETE' THEN
    DELETE FROM pml.name_claims c
    WHERE c.org = OLD.org AND c.project = OLD.project AND c.name = OLD.alias
      AND c.fqdn = OLD.target_fqdn AND c.kind = 'alias'
      -- The names of a record that is being deleted become reserved.
      AND NOT EXISTS (SELECT FROM pml.capability_records r WHERE r.id = OLD.target_fqdn AND r.deleted_at IS NOT NULL);
    PERFORM pg_notify('pml_tools_changed', OLD.org || '.' || OLD.project);
    RETURN NULL;
  END IF;
  SELECT * INTO target FROM pml.capability_records r WHERE r.id = NEW.target_fqdn FOR KEY SHARE;
  IF target.deleted_at IS NOT NULL OR (target.org, target.project) IS DISTINCT FROM (NEW.org, NEW.project)
     OR target.display_name = NEW.alias THEN
    PERFORM pml_internal.pml_refuse_alias(NEW);
  END IF;
  PERFORM pml_internal.pml_claim_name(NEW.org, NEW.project, NEW.alias, NEW.target_fqdn, 'alias');
  PERFORM pg_notify('pml_tools_changed', NEW.org || '.' || NEW.project);
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_alias_keep() IS 'Trigger: claims the name of an alias, and releases it with the alias';
