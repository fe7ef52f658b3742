-- Full-text search. Under row-level security @@ can't use an index (it isn't leakproof), so each row stores its tsvector.

CREATE FUNCTION pml_internal.pml_words(content text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pg_catalog.translate(pg_catalog.regexp_replace(content, '([a-z0-9])([A-Z])', '\1 \2', 'g'), '_:-./', '     ');
COMMENT ON FUNCTION pml_internal.pml_words(text) IS 'A text with identifiers split into words: readJson, read_json and fs:read-json';

-- In PL/pgSQL, which caches the plan; an SQL function that can't be inlined is planned again for every row.
CREATE FUNCTION pml_internal.pml_search_vector(name text, description text, labels text, tools text) RETURNS tsvector
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Long texts are cut: a tsvector has at most a megabyte.
  RETURN setweight(to_tsvector('english', pml_internal.pml_words(coalesce(name, ''))), 'A')
      || CASE WHEN description <> '' THEN setweight(to_tsvector('english', pml_internal.pml_words(left(description, 20000))), 'B')
              ELSE '' END
      || CASE WHEN labels <> '' THEN setweight(to_tsvector('english', pml_internal.pml_words(left(labels, 20000))), 'C')
              ELSE '' END
      || CASE WHEN tools <> '' THEN setweight(to_tsvector('english', pml_internal.pml_words(left(tools, 20000))), 'D')
              ELSE '' END;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_search_vector(text, text, text, text) IS
  'What is searched, in falling weight: name, description, tags or parameters, tools';

CREATE FUNCTION pml_internal.pml_intent_queries(intent text) RETURNS tsquery[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
  -- Stop words count only where there are no other words.
  SELECT coalesce(array_agg(format('''%s'':*', replace(replace(word, '\', '\\'), '''', ''''''))::tsquery), '{}')
  FROM (SELECT unnest(CASE WHEN words.telling = '{}' THEN words.all ELSE words.telling END) AS word
        FROM (SELECT tsvector_to_array(to_tsvector('english', given)) AS telling,
                     tsvector_to_array(to_tsvector('simple', given)) AS all
              FROM (SELECT pml_internal.pml_words(left(pml_intent_queries.intent, 2000)) AS given) AS text) AS words
        LIMIT 40) AS searched
$$;
COMMENT ON FUNCTION pml_internal.pml_intent_queries(text) IS 'A query for each word of an intent, which also finds longer words';

CREATE FUNCTION pml_internal.pml_search_score(search tsvector, queries tsquery[], query tsquery) RETURNS real
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $$
  -- The share of words found, and the weight of where. 0.6079 is the ts_rank of one word of full weight.
  SELECT round((0.7 * (SELECT count(*) FROM unnest(pml_search_score.queries) AS q WHERE pml_search_score.search @@ q)
                  / cardinality(pml_search_score.queries)
              + 0.3 * least(1, ts_rank('{0.1, 0.2, 0.4, 1}', pml_search_score.search, pml_search_score.query)
                               / 0.6079))::numeric, 4)::real
$$;
COMMENT ON FUNCTION pml_internal.pml_search_score(tsvector, tsquery[], tsquery) IS 'How well a row answers the words, from 0 to 1';

CREATE FUNCTION pml_internal.pml_record_search() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'pml.capability_records'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  NEW.search := pml_internal.pml_search_vector(
    CASE WHEN NOT pml_internal.pml_is_unnamed(NEW.display_name) THEN NEW.display_name END, NEW.description,
    array_to_string(NEW.tags, ' '), array_to_string(NEW.tools_used, ' '));
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_record_search() IS 'Trigger: the words by which a capability is found';

CREATE FUNCTION pml_internal.pml_tool_search() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'pml.tool_schema'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  NEW.search := pml_internal.pml_search_vector(
    NEW.tool_id, NEW.description,
    (SELECT string_agg(key, ' ') FROM jsonb_object_keys(
       CASE jsonb_typeof(NEW.input_schema -> 'properties') WHEN 'object' THEN NEW.input_schema -> 'properties' ELSE '{}' END)
     AS key), NULL);
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_tool_search() IS 'Trigger: the words by which a tool is found';
