-- Derives the columns of a new record from its name and code, with the rights of the role that inserts it.

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
  'The compiled form of a stored version with this code, so that restored versions and copies keep their links';

CREATE FUNCTION pml_internal.pml_compiled_once(written pml.capability_records) RETURNS jsonb
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Only the extension's functions run as the engine; they pass what they have compiled in place of the structure. Rows
  -- written by hand are compiled here.
  IF current_user = 'pml_engine' AND written.structure ->> 'linked' = written.code_snippet THEN
    RETURN written.structure;
  END IF;
  RETURN pml_internal.pml_compile(written.code_snippet);
END
$$;
COMMENT ON FUNCTION pml_internal.pml_compiled_once(pml.capability_records) IS
  'The compiled code of a row that is being written, without compiling again if the writer has done so';

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
  kept.capabilities_used := '{}';
  -- Fast path: an expression without a subquery is cheaper.
  IF compiled -> 'capabilities' <> '[]' THEN
    kept.capabilities_used := ARRAY(SELECT jsonb_array_elements_text(compiled -> 'capabilities'));
  END IF;
  RETURN kept;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_record_compiled(pml.capability_records, jsonb) IS
  'The record with what pml_compile made of its code';

-- Checks that the extension's functions make before they write, or leave to ON CONFLICT.
CREATE FUNCTION pml_internal.pml_check_written(written pml.capability_records) RETURNS void
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  same text := CASE WHEN written.record_type = 'capability' AND written.forked_from IS NULL
                    THEN pml_internal.pml_name_of_same_code(written) END;
BEGIN
  PERFORM pml_internal.pml_check_record(written), pml_internal.pml_check_count('usage_count', written.usage_count),
          pml_internal.pml_check_count('success_count', written.success_count),
          pml_internal.pml_check_count('total_latency_ms', written.total_latency_ms);
  IF written.success_count > written.usage_count THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('Invalid success_count: %s', written.success_count), HINT = 'It can''t be more than usage_count.';
  END IF;
  IF written.parent_id IS NOT NULL AND NOT EXISTS (SELECT FROM pml.capability_records r WHERE r.id = written.parent_id) THEN
    RAISE EXCEPTION USING ERRCODE = 'PM001',
      MESSAGE = format('Capability not found: %s', pml_internal.pml_excerpt(written.parent_id)),
      HINT = 'A parent_id is the FQDN of the record from which this one is copied; pml_fork sets it.';
  END IF;
  IF same IS NOT NULL THEN
    PERFORM pml_internal.pml_code_taken(written.org, written.project, same, written.display_name);
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_written(pml.capability_records) IS
  'Validates a record that is inserted by hand';

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
  -- A restore, or an admin who gives the whole row.
  IF NEW.id IS NOT NULL AND admin THEN
    RETURN NEW;
  END IF;

  NEW.id := NULL;
  NEW.org := pml_internal.pml_check_part('org', coalesce(NEW.org, pml_internal.pml_org()));
  NEW.project := pml_internal.pml_check_part('project', coalesce(NEW.project, pml_internal.pml_project()));
  IF NOT pml_internal.pml_may_act(NEW.org, NEW.project) THEN
    PERFORM pml_internal.pml_check_may_act(NEW.org, NEW.project);
  END IF;
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
                         pml_internal.pml_compiled_once(NEW));
    NEW := pml_internal.pml_record_compiled(NEW, compiled);
    IF num_nonnulls(NEW.parameters_schema, NEW.output_schema) > 0 THEN
      PERFORM pml_internal.pml_check_parameters(NEW.parameters_schema),
              pml_internal.pml_check_schema('output_schema', NEW.output_schema);
    END IF;
    NEW.parameters_explicit := NEW.parameters_schema IS NOT NULL;
    NEW.parameters_schema := coalesce(NEW.parameters_schema, pml_internal.pml_source_parameters(NEW.source),
                                      pml_internal.pml_parameters_found(compiled -> 'parameters'));
    NEW.output_explicit := NEW.output_schema IS NOT NULL;
    NEW.output_schema := coalesce(NEW.output_schema, nullif(compiled -> 'output', 'null'));
    IF NEW.tools_used = '{}' AND compiled -> 'tools' <> '[]' THEN
      NEW.tools_used := ARRAY(SELECT jsonb_array_elements_text(compiled -> 'tools'));
    END IF;
    parts := pml_internal.pml_birth_parts(pml_internal.pml_check_name(NEW.display_name), NEW.code_hash, NEW.tools_used);
    NEW.namespace := parts[1];
    NEW.action := parts[2];
    IF NOT NEW.routing_explicit AND NEW.tools_used = '{}' AND NEW.capabilities_used = '{}' THEN
      NEW.routing := 'cloud';
    ELSIF NOT NEW.routing_explicit THEN
      NEW.routing := pml_internal.pml_routing_in(NEW.org, NEW.project, NEW.created_by, pml_internal.pml_called_here(NEW));
    END IF;
  END IF;
  IF NEW.display_name IS NOT NULL THEN
    PERFORM pml_internal.pml_check_name_free(NEW.org, NEW.project, NEW.display_name, NULL);
  END IF;
  IF current_user <> 'pml_engine' THEN
    PERFORM pml_internal.pml_check_written(NEW);
  END IF;
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_record_fill() IS 'Trigger: derives what a new record is from its name and code';
