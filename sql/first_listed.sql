-- The first records of a listing in its order. Each list of a scope (capability_records.listed_in) is read from an index that
-- has the order, no further than the page goes, and what was used since the records were written is added to it.

CREATE TYPE pml_internal.pml_listing AS (
  org text, project text, visibility text, record_type text, named_only boolean, unnamed_only boolean, name_pattern text,
  name_prefix text, namespace_pattern text, tag_pattern text, creator_pattern text, tags text[], sort_by text, first bigint);
COMMENT ON TYPE pml_internal.pml_listing IS
  'What is to be listed; patterns are for LIKE, name_prefix is what all names begin with, first is how many rows in order';

-- Without settings, so that it is inlined.
CREATE FUNCTION pml_internal.pml_is_asked(r pml.capability_records, asked pml_internal.pml_listing) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ((asked).name_pattern IS NULL OR (r).display_name LIKE (asked).name_pattern)
    AND ((asked).namespace_pattern IS NULL
         OR pml_internal.pml_display_namespace((r).display_name, (r).namespace) LIKE (asked).namespace_pattern)
    AND ((asked).tag_pattern IS NULL OR (r).version_tag LIKE (asked).tag_pattern)
    AND ((asked).creator_pattern IS NULL OR (r).created_by LIKE (asked).creator_pattern)
    AND ((asked).tags IS NULL OR (r).tags @> (asked).tags);
COMMENT ON FUNCTION pml_internal.pml_is_asked(pml.capability_records, pml_internal.pml_listing) IS
  'Whether a record of the lists that are read has the names and labels that are asked for';

CREATE FUNCTION pml_internal.pml_private_lists(org text, project text, lists text) RETURNS SETOF text
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  list text := lists;
BEGIN
  -- One index lookup for each. A dot is what follows the dash at the end.
  LOOP
    SELECT r.listed_in INTO list FROM pml.capability_records r
    WHERE r.org = pml_private_lists.org AND r.project = pml_private_lists.project
      AND r.listed_in > list AND r.listed_in < rtrim(lists, '-') || '.'
    ORDER BY r.listed_in LIMIT 1;
    EXIT WHEN NOT FOUND;
    RETURN NEXT list;
  END LOOP;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_private_lists(text, text, text) IS
  'The lists of a scope that begin so: of private records, one for each creator';

CREATE FUNCTION pml_internal.pml_lists_of(asked pml_internal.pml_listing) RETURNS text[]
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  actor text := CASE WHEN NOT pml_internal.pml_is_admin() THEN pml_internal.pml_actor() END;
  types text[] := CASE WHEN asked.record_type IS NULL THEN '{capability,mcp-server}' ELSE ARRAY[asked.record_type] END;
  seen text[] := CASE WHEN asked.visibility IS NULL THEN '{private,project,org,public}' ELSE ARRAY[asked.visibility] END;
BEGIN
  RETURN ARRAY(
    SELECT list.name
    FROM unnest(types) AS type, unnest('{f,t}'::boolean[]) AS is_unnamed, unnest(seen) AS visibility,
         LATERAL (SELECT pml_internal.pml_list_of(type, is_unnamed, visibility, coalesce(actor, '')) AS name
                  WHERE visibility <> 'private' OR actor IS NOT NULL
                  UNION ALL
                  SELECT pml_internal.pml_private_lists(asked.org, asked.project,
                           pml_internal.pml_list_of(type, is_unnamed, visibility, ''))
                  WHERE visibility = 'private' AND actor IS NULL) AS list
    WHERE NOT (is_unnamed AND coalesce(asked.named_only, false))
      AND NOT (NOT is_unnamed AND coalesce(asked.unnamed_only, false)));
END
$$;
COMMENT ON FUNCTION pml_internal.pml_lists_of(pml_internal.pml_listing) IS
  'The lists of which the current user sees something that is asked for; admins see the private records of all';

-- Planned for what is asked: the conditions and orders that aren't asked for vanish, and what is left is what an index has.
CREATE FUNCTION pml_internal.pml_first_listed(asked pml_internal.pml_listing) RETURNS SETOF text
  LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_sort = off SET enable_bitmapscan = off AS $$
DECLARE
  lists text[] := pml_internal.pml_lists_of(asked);
  is_shared boolean := coalesce(asked.visibility IN ('org', 'public'), false);
  -- FQDNs of what is listed begin with it and a dot; a slash is what follows a dot.
  place text := CASE WHEN NOT is_shared THEN asked.org || '.' || asked.project WHEN asked.visibility = 'org' THEN asked.org END;
  named text[];
BEGIN
  IF asked.sort_by <> 'name' AND asked.name_prefix IS NOT NULL AND NOT is_shared THEN
    -- If few have such names, it is quicker to sort them.
    named := ARRAY(
      SELECT r.id FROM unnest(lists) AS list (name) CROSS JOIN LATERAL (
        SELECT r.id FROM pml.capability_records r
        WHERE r.org = asked.org AND r.project = asked.project AND r.listed_in = list.name
          AND r.display_name >= asked.name_prefix AND r.display_name < asked.name_prefix || '~'
        ORDER BY r.display_name LIMIT 2001) AS r LIMIT 2001);
    IF cardinality(named) <= 2000 THEN
      RETURN QUERY SELECT unnest(named);
      RETURN;
    END IF;
  END IF;
  IF is_shared THEN
    RETURN QUERY
      SELECT top.id FROM unnest(lists) AS list (name) CROSS JOIN LATERAL (
        SELECT r.id FROM pml.capability_records r
        WHERE r.listed_in = list.name AND r.visibility = asked.visibility
          AND CASE r.visibility WHEN 'org' THEN r.org ELSE '' END = CASE asked.visibility WHEN 'org' THEN asked.org ELSE '' END
          AND (asked.name_prefix IS NULL
               OR r.display_name >= asked.name_prefix AND r.display_name < asked.name_prefix || '~')
          AND pml_internal.pml_is_asked(r, asked)
        ORDER BY CASE WHEN asked.sort_by = 'usage' THEN r.usage_count END DESC,
                 CASE WHEN asked.sort_by = 'created' THEN r.created_at END DESC, r.display_name, r.id
        LIMIT asked.first) AS top;
  ELSE
    RETURN QUERY
      SELECT top.id FROM unnest(lists) AS list (name) CROSS JOIN LATERAL (
        SELECT r.id FROM pml.capability_records r
        WHERE r.org = asked.org AND r.project = asked.project AND r.listed_in = list.name
          AND (asked.name_prefix IS NULL
               OR r.display_name >= asked.name_prefix AND r.display_name < asked.name_prefix || '~')
          AND pml_internal.pml_is_asked(r, asked)
        ORDER BY CASE WHEN asked.sort_by = 'usage' THEN r.usage_count END DESC,
                 CASE WHEN asked.sort_by = 'created' THEN r.created_at END DESC, r.display_name, r.id
        LIMIT asked.first) AS top;
  END IF;
  IF asked.sort_by = 'usage' THEN
    -- Counts only grow: what comes first now but not by its record is among these.
    RETURN QUERY
      SELECT used.fqdn
      FROM (SELECT DISTINCT u.capability_fqdn AS fqdn FROM pml.capability_usage u
            WHERE place IS NULL OR u.capability_fqdn > place || '.' AND u.capability_fqdn < place || '/') AS used
      CROSS JOIN LATERAL (SELECT r FROM pml.capability_records r WHERE r.id = used.fqdn LIMIT 1) AS stored
      WHERE (stored.r).listed_in = ANY (lists);
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_first_listed(pml_internal.pml_listing) IS
  'The FQDNs of the first records of a listing, and of others: to be filtered, sorted and cut';
