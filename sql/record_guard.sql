-- The rules for an UPDATE of a record and the columns that follow from it: one function for each rule, run with the rights
-- of the role that updates. pml_record_guard calls them in order.

CREATE FUNCTION pml_internal.pml_guard_identity(old pml.capability_records, new pml.capability_records) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  changed text;
BEGIN
  SELECT c.name INTO changed
  FROM (VALUES
    ('id', new.id IS DISTINCT FROM old.id),
    ('org', new.org IS DISTINCT FROM old.org),
    ('project', new.project IS DISTINCT FROM old.project),
    ('namespace', new.namespace IS DISTINCT FROM old.namespace),
    ('action', new.action IS DISTINCT FROM old.action),
    ('hash', new.hash IS DISTINCT FROM old.hash),
    ('record_type', new.record_type IS DISTINCT FROM old.record_type),
    ('created_by', new.created_by IS DISTINCT FROM old.created_by),
    ('created_at', new.created_at IS DISTINCT FROM old.created_at),
    ('version', new.version IS DISTINCT FROM old.version),
    ('parent_id', new.parent_id IS DISTINCT FROM old.parent_id),
    ('forked_from', new.forked_from IS DISTINCT FROM old.forked_from)) AS c (name, differs)
  WHERE c.differs LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'PM007',
      MESSAGE = format('Column "%s" of capability "%s" is immutable', changed, old.display_name),
      HINT = 'An identity never changes. To use other code use pml_update, for another name pml_rename, for a copy pml_fork.';
  END IF;
  IF old.deleted_at IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'PM007',
      MESSAGE = format('Capability "%s" was deleted and can''t be changed', old.display_name),
      HINT = 'Register the code again.';
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_guard_identity(pml.capability_records, pml.capability_records) IS
  'An error if a column that never changes is changed, or anything of a deleted record';

CREATE FUNCTION pml_internal.pml_check_record(written pml.capability_records) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pml_internal.pml_check_record_type(written.record_type), pml_internal.pml_check_visibility(written.visibility),
          pml_internal.pml_check_routing(written.routing), pml_internal.pml_check_count('ttl', written.ttl),
          pml_internal.pml_check_choice('cache_policy', written.cache_policy, '{none,memoize,persistent}'),
          pml_internal.pml_check_choice('source type', coalesce(written.source ->> 'type', ''), '{code,dag,tool}');
  IF written.record_type = 'mcp-server' AND written.code_snippet IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'PM007',
      MESSAGE = format('"%s" is a server, and has no code', written.display_name),
      HINT = 'Change its code_url or version_tag with pml_register_server.';
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_record(pml.capability_records) IS
  'Validates the columns of a record';

CREATE FUNCTION pml_internal.pml_name_of_same_code(written pml.capability_records) RETURNS text
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Private records of several people may have the same code; shared ones may not.
  RETURN (
    SELECT r.display_name
    FROM pml.capability_records r
    WHERE pml_internal.pml_scoped(r.org, r.project, r.code_hash)
          = pml_internal.pml_scoped(written.org, written.project, written.code_hash)
      AND r.id IS DISTINCT FROM written.id AND r.record_type = 'capability' AND r.version = 1 AND r.forked_from IS NULL
      AND r.deleted_at IS NULL AND (r.visibility = 'private') = (written.visibility = 'private')
      AND (written.visibility <> 'private' OR r.created_by = written.created_by)
    LIMIT 1);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_name_of_same_code(pml.capability_records) IS
  'The name of a record with the same code that conflicts with this one; NULL if there is none';

CREATE FUNCTION pml_internal.pml_guard_trust(old pml.capability_records) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT pml_internal.pml_is_admin() THEN
    RAISE EXCEPTION USING ERRCODE = 'PM006',
      MESSAGE = format('Only a member of pml_admin may verify or sign capability "%s"', old.display_name),
      HINT = 'Ask an admin.';
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_guard_trust(pml.capability_records) IS
  'An error unless the role that changes verified or signature is an admin';

CREATE FUNCTION pml_internal.pml_guard_new_trust(old pml.capability_records, new pml.capability_records)
  RETURNS pml.capability_records
  LANGUAGE plpgsql IMMUTABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Values that change together with the code are about the new code.
  IF new.verified = old.verified THEN
    new.verified := false;
  END IF;
  IF new.signature = old.signature THEN
    new.signature := NULL;
  END IF;
  RETURN new;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_guard_new_trust(pml.capability_records, pml.capability_records) IS
  'Resets verified and signature for new code';

CREATE FUNCTION pml_internal.pml_guard_visibility(old pml.capability_records, new pml.capability_records) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  same text;
BEGIN
  IF NOT pml_internal.pml_visible(new.org, new.project, new.visibility, new.created_by) THEN
    RAISE EXCEPTION USING ERRCODE = 'PM006',
      MESSAGE = format('Only the creator of capability "%s" may make it %s', old.display_name, new.visibility),
      DETAIL = 'You would no longer see it.',
      HINT = format('Ask its creator, or copy it with %s: the copy is yours.', pml_internal.pml_hint('pml_fork', 'cap_fork'));
  END IF;
  IF new.record_type = 'capability' AND new.version = 1 AND new.forked_from IS NULL AND new.deleted_at IS NULL THEN
    same := pml_internal.pml_name_of_same_code(new);
    IF same IS NOT NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'PM003',
        MESSAGE = format('Capability "%s" can''t become %s: its code is already capability "%s" in scope %s.%s',
                         old.display_name, new.visibility, same, new.org, new.project),
        HINT = format('Call "%s", or delete one of the two.', same);
    END IF;
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_guard_visibility(pml.capability_records, pml.capability_records) IS
  'An error if the writer would no longer see the record, or two shared records would have the same code';

CREATE FUNCTION pml_internal.pml_guard_name(old pml.capability_records, new_name text) RETURNS text
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pml_internal.pml_check_name_free(old.org, old.project, new_name, old.id);
  IF old.record_type = 'mcp-server' THEN
    RETURN pml_internal.pml_check_server_name(new_name);
  END IF;
  -- Former names stay valid even if the rules have changed.
  IF NOT EXISTS (SELECT FROM pml.capability_aliases a
                 WHERE a.org = old.org AND a.project = old.project AND a.alias = new_name AND a.target_fqdn = old.id) THEN
    PERFORM pml_internal.pml_check_name(coalesce(new_name, '')),
            pml_internal.pml_check_not_recursive(old.code_snippet, new_name);
  END IF;
  RETURN new_name;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_guard_name(pml.capability_records, text) IS
  'The new name as it is stored, if it is valid and free; else an error';

CREATE FUNCTION pml_internal.pml_structure_now(org text, project text, viewer text, structure jsonb) RETURNS jsonb
  LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(pml_internal.pml_structure_with(pml_structure_now.structure::text, pml_internal.pml_schemas_of(
           pml_structure_now.org, pml_structure_now.project, pml_structure_now.viewer,
           ARRAY(SELECT coalesce(node ->> 'tool', node ->> 'capabilityId')
                 FROM jsonb_array_elements(pml_structure_now.structure -> 'nodes') AS node))::text),
           pml_structure_now.structure)
$$;
COMMENT ON FUNCTION pml_internal.pml_structure_now(text, text, text, jsonb) IS
  'A structure with the provides edges that today''s schemas give, as far as the viewer sees them';

CREATE FUNCTION pml_internal.pml_current_structure(asked pml.capability_records) RETURNS jsonb
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF asked.capabilities_used <> '{}' AND EXISTS (
       SELECT FROM unnest(asked.capabilities_used) AS key
       WHERE NOT starts_with(key, asked.org || '.' || asked.project || '.')) THEN
    RETURN pml_internal.pml_structure_now(asked.org, asked.project, asked.created_by, asked.structure);
  END IF;
  RETURN asked.structure;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_current_structure(pml.capability_records) IS
  'The structure of a record. Schemas of what it calls in other scopes are read now: their changes can''t update it';

CREATE FUNCTION pml_internal.pml_guard_source(old pml.capability_records, new pml.capability_records)
  RETURNS pml.capability_records
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF new.source IS DISTINCT FROM old.source AND new.source ->> 'type' <> 'code'
     AND new.code_snippet IS NOT DISTINCT FROM old.code_snippet THEN
    new.code_snippet := pml_internal.pml_source_code(new.source);
  ELSIF new.code_snippet IS DISTINCT FROM old.code_snippet AND new.source IS NOT DISTINCT FROM old.source THEN
    new.source := '{"type": "code"}';
  END IF;
  RETURN new;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_guard_source(pml.capability_records, pml.capability_records) IS
  'The record with the code of a new source, or the source of new code';

CREATE FUNCTION pml_internal.pml_recompiled(old pml.capability_records, new pml.capability_records) RETURNS jsonb
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  compiled jsonb;
BEGIN
  PERFORM pml_internal.pml_check_code(new.code_snippet);
  -- The setting doesn't exist before the session has loaded the library.
  IF current_setting('pml.restore_version', true) = 'on' THEN
    compiled := pml_internal.pml_compiled_before(old.id, new.code_snippet);
  END IF;
  RETURN coalesce(compiled, pml_internal.pml_compiled_once(new));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_recompiled(pml.capability_records, pml.capability_records) IS
  'The compiled new code of a record; a restored version keeps its links';

CREATE FUNCTION pml_internal.pml_guard_code(old pml.capability_records, new pml.capability_records, compiled jsonb)
  RETURNS pml.capability_records
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF compiled ->> 'linked' <> old.code_snippet THEN
    new := pml_internal.pml_record_compiled(new, compiled);
    IF new.tools_used IS NOT DISTINCT FROM old.tools_used THEN
      new.tools_used := ARRAY(SELECT jsonb_array_elements_text(compiled -> 'tools'));
    END IF;
    RETURN new;
  END IF;
  IF compiled IS NULL AND (new.code_hash, new.executable, new.unresolved, new.capabilities_used)
     IS DISTINCT FROM (old.code_hash, old.executable, old.unresolved, old.capabilities_used) THEN
    RAISE EXCEPTION USING ERRCODE = 'PM007',
      MESSAGE = format('The hash, executable and calls of capability "%s" follow from its code', old.display_name),
      HINT = 'Change code_snippet.';
  END IF;
  new.code_snippet := old.code_snippet;
  new.code_hash := old.code_hash;
  new.executable := old.executable;
  new.unresolved := old.unresolved;
  new.capabilities_used := old.capabilities_used;
  IF new.structure IS DISTINCT FROM old.structure THEN
    new.structure := pml_internal.pml_structure_now(old.org, old.project, old.created_by, old.structure);
  END IF;
  RETURN new;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_guard_code(pml.capability_records, pml.capability_records, jsonb) IS
  'Sets the columns that follow from the code (compiled; NULL: unchanged), which can''t be written directly';

CREATE FUNCTION pml_internal.pml_guard_schemas(old pml.capability_records, new pml.capability_records, compiled jsonb)
  RETURNS pml.capability_records
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF (new.parameters_schema, new.output_schema) IS DISTINCT FROM (old.parameters_schema, old.output_schema) THEN
    PERFORM pml_internal.pml_check_parameters(new.parameters_schema),
            pml_internal.pml_check_schema('output_schema', new.output_schema);
  END IF;
  IF new.parameters_explicit = old.parameters_explicit
     AND new.parameters_schema IS DISTINCT FROM old.parameters_schema THEN
    new.parameters_explicit := new.parameters_schema IS NOT NULL;
  END IF;
  IF NOT new.parameters_explicit AND (compiled IS NOT NULL OR new.parameters_schema IS NULL) THEN
    new.parameters_schema := coalesce(pml_internal.pml_source_parameters(new.source), compiled -> 'parameters',
                                      pml_internal.pml_infer_parameters(new.code_snippet));
  END IF;
  IF new.output_explicit = old.output_explicit AND new.output_schema IS DISTINCT FROM old.output_schema THEN
    new.output_explicit := new.output_schema IS NOT NULL;
  END IF;
  IF NOT new.output_explicit AND (compiled IS NOT NULL OR new.output_schema IS DISTINCT FROM old.output_schema) THEN
    new.output_schema := nullif(coalesce(compiled, pml_internal.pml_compile(new.code_snippet)) -> 'output', 'null');
  END IF;
  RETURN new;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_guard_schemas(pml.capability_records, pml.capability_records, jsonb) IS
  'The record with the schemas that were given, or with those of its code where none is';

CREATE FUNCTION pml_internal.pml_guard_version(old pml.capability_records, new pml.capability_records)
  RETURNS pml.capability_records
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  new.version_tag := pml_internal.pml_version_tag(new.version_tag);
  IF (new.code_snippet, new.parameters_schema, new.output_schema, new.code_url, new.version_tag)
     IS NOT DISTINCT FROM (old.code_snippet, old.parameters_schema, old.output_schema, old.code_url, old.version_tag) THEN
    IF new.change_summary IS DISTINCT FROM old.change_summary THEN
      RAISE EXCEPTION USING ERRCODE = 'PM007',
        MESSAGE = format('The change summary of version %s of "%s" is immutable', old.version, old.display_name),
        HINT = 'Give it together with the change.';
    END IF;
    RETURN new;
  END IF;
  new.version := old.version + 1;
  -- A tag belongs to the version it was given to.
  IF new.version_tag = old.version_tag THEN
    new.version_tag := NULL;
  ELSE
    PERFORM pml_internal.pml_check_tag_free(old.id, old.display_name, new.version_tag);
  END IF;
  IF new.change_summary = old.change_summary THEN
    new.change_summary := NULL;
  END IF;
  RETURN new;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_guard_version(pml.capability_records, pml.capability_records) IS
  'The record with its next version, if anything that belongs to a version has changed';

CREATE FUNCTION pml_internal.pml_guard_routing(old pml.capability_records, new pml.capability_records)
  RETURNS pml.capability_records
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF new.routing IS NOT NULL AND new.routing_explicit = old.routing_explicit AND new.routing <> old.routing THEN
    new.routing_explicit := true;
  ELSIF NOT new.routing_explicit
    AND (new.routing IS NULL OR old.routing_explicit OR new.tools_used IS DISTINCT FROM old.tools_used
         OR new.capabilities_used IS DISTINCT FROM old.capabilities_used) THEN
    new.routing := pml_internal.pml_routing_in(old.org, old.project, old.created_by, pml_internal.pml_called_here(new));
  END IF;
  RETURN new;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_guard_routing(pml.capability_records, pml.capability_records) IS
  'The record with the routing that was given, or with that of what it calls';

CREATE FUNCTION pml_internal.pml_guard_stamp(
    old pml.capability_records, new pml.capability_records, only_follows boolean) RETURNS pml.capability_records
  LANGUAGE plpgsql VOLATILE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  new.updated_by := old.updated_by;
  new.updated_at := old.updated_at;
  -- Usage counts and recomputed columns aren't changes. Timestamps of versions increase even if the clock is set back.
  IF NOT only_follows AND (new.usage_count, new.success_count, new.total_latency_ms)
     IS NOT DISTINCT FROM (old.usage_count, old.success_count, old.total_latency_ms)
     OR new.version > old.version OR new.display_name IS DISTINCT FROM old.display_name THEN
    new.updated_by := pml_internal.pml_actor();
    new.updated_at := greatest(clock_timestamp(), old.updated_at + interval '1 microsecond');
  END IF;
  RETURN new;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_guard_stamp(pml.capability_records, pml.capability_records, boolean) IS
  'The record with who changed it and when, if that is a change';

CREATE FUNCTION pml_internal.pml_record_guard() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  only_follows boolean;
  compiled jsonb;
BEGIN
  IF TG_RELID <> 'pml.capability_records'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  -- NULL is how the extension requests recomputation, when what the code calls has changed.
  only_follows := NEW.structure IS NULL AND OLD.structure IS NOT NULL OR NEW.routing IS NULL;
  PERFORM pml_internal.pml_guard_identity(OLD, NEW);
  IF (NEW.verified, NEW.signature) IS DISTINCT FROM (OLD.verified, OLD.signature) THEN
    PERFORM pml_internal.pml_guard_trust(OLD);
  END IF;
  IF NEW.visibility <> OLD.visibility THEN
    PERFORM pml_internal.pml_guard_visibility(OLD, NEW);
  END IF;
  IF NEW.display_name IS DISTINCT FROM OLD.display_name THEN
    NEW.display_name := pml_internal.pml_guard_name(OLD, NEW.display_name);
  END IF;
  IF NEW.deleted_at IS NOT NULL THEN
    NEW.deleted_at := clock_timestamp();
    NEW.deleted_by := pml_internal.pml_actor();
  END IF;
  IF OLD.record_type = 'capability' THEN
    NEW := pml_internal.pml_guard_source(OLD, NEW);
    IF NEW.code_snippet IS DISTINCT FROM OLD.code_snippet THEN
      compiled := pml_internal.pml_recompiled(OLD, NEW);
    END IF;
    NEW := pml_internal.pml_guard_code(OLD, NEW, compiled);
    NEW := pml_internal.pml_guard_schemas(OLD, NEW, compiled);
  ELSIF NEW.code_snippet IS NOT NULL THEN
    PERFORM pml_internal.pml_check_record(NEW);
  END IF;
  IF (NEW.code_snippet, NEW.code_url) IS DISTINCT FROM (OLD.code_snippet, OLD.code_url) THEN
    NEW := pml_internal.pml_guard_new_trust(OLD, NEW);
  END IF;
  NEW := pml_internal.pml_guard_version(OLD, NEW);
  IF OLD.record_type = 'capability' THEN
    NEW := pml_internal.pml_guard_routing(OLD, NEW);
  END IF;
  NEW := pml_internal.pml_guard_stamp(OLD, NEW, only_follows);
  -- The functions of the extension have checked what they were given.
  IF current_user <> 'pml_engine' THEN
    PERFORM pml_internal.pml_check_record(NEW);
  END IF;
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_record_guard() IS
  'Trigger: rejects changes of immutable columns and derives the columns that follow from others';
