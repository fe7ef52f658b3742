-- The capabilities that fit a filter.

CREATE FUNCTION @extschema@.pml_list(
    pattern text DEFAULT NULL, namespace text DEFAULT NULL, named_only boolean DEFAULT false,
    unnamed_only boolean DEFAULT false, created_by text DEFAULT NULL, tags text[] DEFAULT NULL,
    visibility text DEFAULT NULL, sort_by text DEFAULT 'usage', "limit" bigint DEFAULT NULL, "offset" bigint DEFAULT 0)
  RETURNS TABLE (fqdn text, name text, description text, namespace text, visibility text, routing text,
                 version integer, version_tag text, tags text[], usage_count bigint, success_rate numeric,
                 created_by text, created_at timestamptz, parameters jsonb)
  LANGUAGE sql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
  WITH here AS MATERIALIZED (
    SELECT @extschema@.pml_org() AS org, @extschema@.pml_project() AS project,
           @extschema@.pml_glob_to_like(pml_list.pattern) AS name_pattern,
           @extschema@.pml_glob_to_like(pml_list.created_by) AS creator_pattern
    WHERE @extschema@.pml_check_list(named_only, unnamed_only, visibility, sort_by))
  SELECT r.id,
         CASE WHEN r.org = here.org AND r.project = here.project THEN r.display_name
              ELSE r.org || '.' || r.project || ':' || r.display_name END,
         r.description, @extschema@.pml_display_namespace(r.display_name, r.namespace), r.visibility, r.routing,
         r.version, r.version_tag, r.tags, r.usage_count,
         @extschema@.pml_success_rate(r.success_count, r.usage_count), r.created_by, r.created_at, r.parameters_schema
  FROM here
  -- What is shared more widely is also looked for more widely.
  JOIN pml.capability_records r ON CASE pml_list.visibility
         WHEN 'public' THEN true
         WHEN 'org' THEN r.org = here.org
         ELSE r.org = here.org AND r.project = here.project END
  WHERE r.record_type = 'capability' AND r.deleted_at IS NULL
    AND (pml_list.visibility IS NULL OR r.visibility = pml_list.visibility)
    AND (here.name_pattern IS NULL OR r.display_name LIKE here.name_pattern)
    AND (pml_list.namespace IS NULL
         OR @extschema@.pml_display_namespace(r.display_name, r.namespace) = pml_list.namespace)
    AND NOT (coalesce(pml_list.named_only, false) AND @extschema@.pml_is_unnamed(r.display_name))
    AND NOT (coalesce(pml_list.unnamed_only, false) AND NOT @extschema@.pml_is_unnamed(r.display_name))
    AND (here.creator_pattern IS NULL OR r.created_by LIKE here.creator_pattern)
    AND (pml_list.tags IS NULL OR r.tags @> pml_list.tags)
  ORDER BY CASE WHEN pml_list.sort_by = 'usage' THEN r.usage_count END DESC,
           CASE WHEN pml_list.sort_by = 'created' THEN r.created_at END DESC,
           r.display_name, r.id
  LIMIT pml_list."limit" OFFSET coalesce(pml_list."offset", 0)
$$;
COMMENT ON FUNCTION @extschema@.pml_list(text, text, boolean, boolean, text, text[], text, text, bigint, bigint) IS
  'The capabilities of the current scope; with visibility => org or public, those of all scopes seen from here';

CREATE FUNCTION @extschema@.pml_check_visibility(visibility text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF visibility NOT IN ('private', 'project', 'org', 'public') THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('Invalid visibility: "%s"', @extschema@.pml_excerpt(visibility)),
      HINT = 'Use private, project, org or public.';
  END IF;
  RETURN visibility;
END
$$;
COMMENT ON FUNCTION @extschema@.pml_check_visibility(text) IS 'The visibility, if it is one; else an error';

CREATE FUNCTION @extschema@.pml_check_list(
    named_only boolean, unnamed_only boolean, visibility text, sort_by text) RETURNS boolean
  LANGUAGE plpgsql STABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF named_only AND unnamed_only THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = 'named_only and unnamed_only exclude each other', HINT = 'Set one of them.';
  END IF;
  IF coalesce(sort_by, '') NOT IN ('usage', 'name', 'created') THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('Invalid sort_by: "%s"', @extschema@.pml_excerpt(sort_by)), HINT = 'Use usage, name or created.';
  END IF;
  PERFORM @extschema@.pml_check_visibility(visibility);
  PERFORM @extschema@.pml_check_may_act(@extschema@.pml_org(), @extschema@.pml_project());
  RETURN true;
END
$$;
COMMENT ON FUNCTION @extschema@.pml_check_list(boolean, boolean, text, text) IS
  'True, or an error that says which argument of pml_list is wrong';
