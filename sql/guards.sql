-- What a hand-written INSERT, UPDATE or DELETE may do: these run with the rights of whoever writes.

CREATE FUNCTION pml_internal.pml_compiled_before(fqdn text, code text) RETURNS jsonb
  LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object(
           'hash', v.code_hash, 'linked', v.code_snippet, 'executable', v.executable, 'structure', v.structure,
           'parameters', pml_internal.pml_infer_parameters(v.code_snippet), 'output', v.output_schema,
           'tools', v.tools_used, 'capabilities', v.capabilities_used, 'unresolved', v.unresolved)
  FROM pml.capability_versions v
  WHERE v.capability_fqdn = pml_compiled_before.fqdn AND v.code_snippet = pml_compiled_before.code AND v.executable IS NOT NULL
  ORDER BY v.version DESC LIMIT 1
$$;
COMMENT ON FUNCTION pml_internal.pml_compiled_before(text, text) IS
  'What was compiled when this code was saved: an old version or a copy means what it meant, whatever has that name today';

CREATE FUNCTION pml_internal.pml_record_compiled(kept pml.capability_records, compiled jsonb)
  RETURNS pml.capability_records
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  kept.code_snippet := compiled ->> 'linked';
  kept.code_hash := compiled ->> 'hash';
  kept.executable := compiled ->> 'executable';
  kept.structure := compiled -> 'structure';
  kept.unresolved := compiled -> 'unresolved';
  kept.capabilities_used := ARRAY(SELECT jsonb_array_elements_text(compiled -> 'capabilities'));
  RETURN kept;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_record_compiled(pml.capability_records, jsonb) IS
  'The record with what pml_compile made of its code';

CREATE FUNCTION pml_internal.pml_structure_now(org text, project text, structure jsonb) RETURNS jsonb
  LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
  SELECT pml_internal.pml_structure_with(pml_structure_now.structure, pml_internal.pml_schemas_of(
           pml_structure_now.org, pml_structure_now.project,
           ARRAY(SELECT coalesce(node ->> 'tool', node ->> 'capabilityId')
                 FROM jsonb_array_elements(pml_structure_now.structure -> 'nodes') AS node)))
$$;
COMMENT ON FUNCTION pml_internal.pml_structure_now(text, text, jsonb) IS
  'A structure with the provides edges that today''s schemas give';

CREATE FUNCTION pml_internal.pml_record_fill() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  admin boolean := pml_internal.pml_is_admin();
  compiled jsonb;
  parts text[];
BEGIN
  IF TG_RELID <> 'pml.capability_records'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  -- A restore, or an admin who says exactly what the row is.
  IF NEW.id IS NOT NULL AND admin THEN
    RETURN NEW;
  END IF;

  NEW.id := NULL;
  NEW.org := pml_internal.pml_check_part('org', coalesce(NEW.org, pml_internal.pml_org()));
  NEW.project := pml_internal.pml_check_part('project', coalesce(NEW.project, pml_internal.pml_project()));
  PERFORM pml_internal.pml_check_may_act(NEW.org, NEW.project);
  IF NOT admin THEN
    NEW.created_by := NULL;
    NEW.created_at := NULL;
    NEW.verified := false;
    NEW.signature := NULL;
  END IF;
  NEW.created_by := coalesce(NEW.created_by, pml_internal.pml_actor());
  NEW.created_at := coalesce(NEW.created_at, clock_timestamp());
  NEW.updated_by := NEW.created_by;
  NEW.updated_at := NEW.created_at;
  NEW.version := 1;
  NEW.version_tag := pml_internal.pml_version_tag(NEW.version_tag);
  NEW.deleted_at := NULL;
  NEW.deleted_by := NULL;

  IF NEW.record_type = 'mcp-server' THEN
    NEW.display_name := pml_internal.pml_check_server_name(NEW.display_name);
    NEW.namespace := 'mcp';
    NEW.action := pml_internal.pml_check_part('server name', substr(NEW.display_name, 5));
    NEW.code_hash := pml_internal.pml_text_hash(concat_ws(' ', NEW.display_name, NEW.code_url));
  ELSE
    IF NEW.code_snippet IS NULL AND NEW.source ->> 'type' <> 'code' THEN
      NEW.code_snippet := pml_internal.pml_source_code(NEW.source);
    END IF;
    PERFORM pml_internal.pml_check_code(NEW.code_snippet);
    compiled := coalesce(pml_internal.pml_compiled_before(NEW.forked_from, NEW.code_snippet),
                         pml_internal.pml_compile(NEW.code_snippet));
    NEW := pml_internal.pml_record_compiled(NEW, compiled);
    PERFORM pml_internal.pml_check_schema('parameters_schema', NEW.parameters_schema),
            pml_internal.pml_check_schema('output_schema', NEW.output_schema);
    NEW.parameters_explicit := NEW.parameters_schema IS NOT NULL;
    NEW.parameters_schema := coalesce(NEW.parameters_schema, pml_internal.pml_source_parameters(NEW.source),
                                      compiled -> 'parameters');
    NEW.output_explicit := NEW.output_schema IS NOT NULL;
    NEW.output_schema := coalesce(NEW.output_schema, nullif(compiled -> 'output', 'null'));
    IF NEW.tools_used = '{}' THEN
      NEW.tools_used := ARRAY(SELECT jsonb_array_elements_text(compiled -> 'tools'));
    END IF;
    parts := pml_internal.pml_birth_parts(pml_internal.pml_check_name(NEW.display_name), NEW.code_hash, NEW.tools_used);
    NEW.namespace := parts[1];
    NEW.action := parts[2];
    IF NOT NEW.routing_explicit THEN
      NEW.routing := pml_internal.pml_routing_in(NEW.org, NEW.project, NEW.tools_used || NEW.capabilities_used);
    END IF;
  END IF;
  IF NEW.display_name IS NOT NULL THEN
    PERFORM pml_internal.pml_check_name_free(NEW.org, NEW.project, NEW.display_name, NULL);
  END IF;
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_record_fill() IS 'Trigger: derives what a new record is from its name and code';

CREATE FUNCTION pml_internal.pml_record_guard() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  changed text;
  compiled jsonb;
  only_structure boolean;
BEGIN
  IF TG_RELID <> 'pml.capability_records'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  -- How the extension itself asks for it, when a schema has changed.
  only_structure := NEW.structure IS NULL AND OLD.structure IS NOT NULL;
  SELECT c.name INTO changed
  FROM (VALUES
    ('id', NEW.id IS DISTINCT FROM OLD.id),
    ('org', NEW.org IS DISTINCT FROM OLD.org),
    ('project', NEW.project IS DISTINCT FROM OLD.project),
    ('namespace', NEW.namespace IS DISTINCT FROM OLD.namespace),
    ('action', NEW.action IS DISTINCT FROM OLD.action),
    ('hash', NEW.hash IS DISTINCT FROM OLD.hash),
    ('record_type', NEW.record_type IS DISTINCT FROM OLD.record_type),
    ('created_by', NEW.created_by IS DISTINCT FROM OLD.created_by),
    ('created_at', NEW.created_at IS DISTINCT FROM OLD.created_at),
    ('version', NEW.version IS DISTINCT FROM OLD.version),
    ('parent_id', NEW.parent_id IS DISTINCT FROM OLD.parent_id),
    ('forked_from', NEW.forked_from IS DISTINCT FROM OLD.forked_from)) AS c (name, differs)
  WHERE c.differs LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'PM007',
      MESSAGE = format('Column "%s" of capability "%s" is immutable', changed, OLD.display_name),
      HINT = 'An identity never changes. To use other code use pml_update, for another name pml_rename, for a copy pml_fork.';
  END IF;
  IF OLD.deleted_at IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'PM007',
      MESSAGE = format('Capability "%s" was deleted and can''t be changed', OLD.display_name),
      HINT = 'Register the code again.';
  END IF;
  IF (NEW.verified, NEW.signature) IS DISTINCT FROM (OLD.verified, OLD.signature) AND NOT pml_internal.pml_is_admin() THEN
    RAISE EXCEPTION USING ERRCODE = 'PM006',
      MESSAGE = format('Only a member of pml_admin may verify or sign capability "%s"', OLD.display_name),
      HINT = 'Ask an admin.';
  END IF;

  IF NEW.display_name IS DISTINCT FROM OLD.display_name THEN
    PERFORM pml_internal.pml_check_name_free(OLD.org, OLD.project, NEW.display_name, OLD.id);
    IF OLD.record_type = 'mcp-server' THEN
      NEW.display_name := pml_internal.pml_check_server_name(NEW.display_name);
    ELSIF NOT EXISTS (SELECT FROM pml.capability_aliases a
                      WHERE a.org = OLD.org AND a.project = OLD.project
                        AND a.alias = NEW.display_name AND a.target_fqdn = OLD.id) THEN
      PERFORM pml_internal.pml_check_name(coalesce(NEW.display_name, ''));
    END IF;
  END IF;

  IF NEW.deleted_at IS NOT NULL THEN
    NEW.deleted_at := clock_timestamp();
    NEW.deleted_by := pml_internal.pml_actor();
  END IF;

  IF OLD.record_type = 'capability' THEN
    IF NEW.source IS DISTINCT FROM OLD.source AND NEW.source ->> 'type' <> 'code'
       AND NEW.code_snippet IS NOT DISTINCT FROM OLD.code_snippet THEN
      NEW.code_snippet := pml_internal.pml_source_code(NEW.source);
    ELSIF NEW.code_snippet IS DISTINCT FROM OLD.code_snippet AND NEW.source IS NOT DISTINCT FROM OLD.source THEN
      NEW.source := '{"type": "code"}';
    END IF;
    IF NEW.code_snippet IS DISTINCT FROM OLD.code_snippet THEN
      PERFORM pml_internal.pml_check_code(NEW.code_snippet);
      IF current_setting('pml.restore_version') = 'on' THEN
        compiled := pml_internal.pml_compiled_before(OLD.id, NEW.code_snippet);
      END IF;
      compiled := coalesce(compiled, pml_internal.pml_compile(NEW.code_snippet));
    END IF;
    IF compiled IS NULL AND (NEW.code_hash, NEW.executable, NEW.unresolved, NEW.capabilities_used)
       IS DISTINCT FROM (OLD.code_hash, OLD.executable, OLD.unresolved, OLD.capabilities_used) THEN
      RAISE EXCEPTION USING ERRCODE = 'PM007',
        MESSAGE = format('The hash, executable and calls of capability "%s" follow from its code', OLD.display_name),
        HINT = 'Change code_snippet.';
    END IF;
    IF compiled ->> 'linked' <> OLD.code_snippet THEN
      NEW := pml_internal.pml_record_compiled(NEW, compiled);
      IF NEW.tools_used IS NOT DISTINCT FROM OLD.tools_used THEN
        NEW.tools_used := ARRAY(SELECT jsonb_array_elements_text(compiled -> 'tools'));
      END IF;
    ELSE
      NEW.code_snippet := OLD.code_snippet;
      NEW.code_hash := OLD.code_hash;
      NEW.executable := OLD.executable;
      NEW.unresolved := OLD.unresolved;
      NEW.capabilities_used := OLD.capabilities_used;
      IF NEW.structure IS DISTINCT FROM OLD.structure THEN
        NEW.structure := pml_internal.pml_structure_now(OLD.org, OLD.project, OLD.structure);
      END IF;
    END IF;
    IF (NEW.parameters_schema, NEW.output_schema) IS DISTINCT FROM (OLD.parameters_schema, OLD.output_schema) THEN
      PERFORM pml_internal.pml_check_schema('parameters_schema', NEW.parameters_schema),
              pml_internal.pml_check_schema('output_schema', NEW.output_schema);
    END IF;
    IF NEW.parameters_explicit = OLD.parameters_explicit
       AND NEW.parameters_schema IS DISTINCT FROM OLD.parameters_schema THEN
      NEW.parameters_explicit := NEW.parameters_schema IS NOT NULL;
    END IF;
    IF NOT NEW.parameters_explicit AND (compiled IS NOT NULL OR NEW.parameters_schema IS NULL) THEN
      NEW.parameters_schema := coalesce(pml_internal.pml_source_parameters(NEW.source), compiled -> 'parameters',
                                        pml_internal.pml_infer_parameters(NEW.code_snippet));
    END IF;
    IF NEW.output_explicit = OLD.output_explicit AND NEW.output_schema IS DISTINCT FROM OLD.output_schema THEN
      NEW.output_explicit := NEW.output_schema IS NOT NULL;
    END IF;
    IF NOT NEW.output_explicit AND (compiled IS NOT NULL OR NEW.output_schema IS DISTINCT FROM OLD.output_schema) THEN
      NEW.output_schema := nullif(coalesce(compiled, pml_internal.pml_compile(NEW.code_snippet)) -> 'output', 'null');
    END IF;
  END IF;

  NEW.version_tag := pml_internal.pml_version_tag(NEW.version_tag);
  IF (NEW.code_snippet, NEW.parameters_schema, NEW.output_schema, NEW.code_url, NEW.version_tag)
     IS DISTINCT FROM (OLD.code_snippet, OLD.parameters_schema, OLD.output_schema, OLD.code_url, OLD.version_tag) THEN
    NEW.version := OLD.version + 1;
    -- A tag belongs to the version it was given to.
    IF NEW.version_tag = OLD.version_tag THEN
      NEW.version_tag := NULL;
    ELSIF EXISTS (SELECT FROM pml.capability_versions v
                  WHERE v.capability_fqdn = OLD.id AND v.version_tag = NEW.version_tag) THEN
      RAISE EXCEPTION USING ERRCODE = 'PM003',
        MESSAGE = format('Version tag %s already exists for %s', NEW.version_tag, OLD.display_name),
        HINT = 'A tag names one version for ever. Give the next one.';
    END IF;
    IF NEW.change_summary = OLD.change_summary THEN
      NEW.change_summary := NULL;
    END IF;
  ELSIF NEW.change_summary IS DISTINCT FROM OLD.change_summary THEN
    RAISE EXCEPTION USING ERRCODE = 'PM007',
      MESSAGE = format('The change summary of version %s of "%s" is immutable', OLD.version, OLD.display_name),
      HINT = 'It is given with the change itself.';
  END IF;

  IF OLD.record_type = 'capability' THEN
    IF NEW.routing_explicit = OLD.routing_explicit AND NEW.routing IS DISTINCT FROM OLD.routing THEN
      NEW.routing_explicit := true;
    ELSIF NOT NEW.routing_explicit
      AND (OLD.routing_explicit OR NEW.tools_used IS DISTINCT FROM OLD.tools_used
           OR NEW.capabilities_used IS DISTINCT FROM OLD.capabilities_used) THEN
      NEW.routing := pml_internal.pml_routing_in(OLD.org, OLD.project, NEW.tools_used || NEW.capabilities_used);
    END IF;
  END IF;

  NEW.updated_by := OLD.updated_by;
  NEW.updated_at := OLD.updated_at;
  -- Neither being used nor knowing more of the tools it calls is being changed. Later versions have later times,
  -- whatever the clock does.
  IF NOT only_structure AND (NEW.usage_count, NEW.success_count, NEW.total_latency_ms)
     IS NOT DISTINCT FROM (OLD.usage_count, OLD.success_count, OLD.total_latency_ms)
     OR NEW.version > OLD.version OR NEW.display_name IS DISTINCT FROM OLD.display_name THEN
    NEW.updated_by := pml_internal.pml_actor();
    NEW.updated_at := greatest(clock_timestamp(), OLD.updated_at + interval '1 microsecond');
  END IF;
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_record_guard() IS 'Trigger: refuses changes of what is immutable, makes new versions';

CREATE FUNCTION pml_internal.pml_refuse_change() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID NOT IN ('pml.capability_versions'::regclass, 'pml.capability_aliases'::regclass) THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'PM007',
    MESSAGE = format('%s of %s is not allowed: it is append-only', TG_OP, TG_TABLE_NAME),
    HINT = TG_ARGV[0];
END
$$;
COMMENT ON FUNCTION pml_internal.pml_refuse_change() IS 'Trigger: refuses the statement';
