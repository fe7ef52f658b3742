-- Bearer tokens of the proxy's clients, as hashes. A token fixes the scope and actor of its holder.

CREATE TABLE pml.tokens (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  token_hash text COLLATE "C" NOT NULL UNIQUE CHECK (token_hash ~ '^[0-9a-f]{64}$'),
  label text,
  org text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  actor text NOT NULL CHECK (actor <> ''),
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);
COMMENT ON TABLE pml.tokens IS 'The bearer tokens that a proxy accepts';
COMMENT ON COLUMN pml.tokens.id IS 'The token, for those who manage it';
COMMENT ON COLUMN pml.tokens.token_hash IS 'SHA-256 of the token, in hex';
COMMENT ON COLUMN pml.tokens.label IS 'What it is for';
COMMENT ON COLUMN pml.tokens.org IS 'The organisation in which its holder acts';
COMMENT ON COLUMN pml.tokens.project IS 'The project';
COMMENT ON COLUMN pml.tokens.actor IS 'The actor as which its holder acts';
COMMENT ON COLUMN pml.tokens.created_by IS 'The admin who made it';
COMMENT ON COLUMN pml.tokens.created_at IS 'When it was made';
COMMENT ON COLUMN pml.tokens.expires_at IS 'When it expires; NULL: never';
COMMENT ON COLUMN pml.tokens.revoked_at IS 'When it was revoked';
COMMENT ON COLUMN pml.tokens.last_used_at IS 'When it was last presented, to the minute';

CREATE FUNCTION pml_internal.pml_token_add(
    token_hash text, org text, project text, actor text, label text DEFAULT NULL, expires_at timestamptz DEFAULT NULL)
  RETURNS uuid
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  new_id uuid;
BEGIN
  PERFORM pml_internal.pml_check_admin('add tokens');
  PERFORM pml_internal.pml_check_part('org', pml_token_add.org),
          pml_internal.pml_check_part('project', pml_token_add.project);
  IF coalesce(lower(pml_token_add.token_hash), '') !~ '^[0-9a-f]{64}$' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'Invalid token hash',
      HINT = 'Give the SHA-256 of the token, in hex; the token itself never goes to the database.';
  ELSIF coalesce(pml_token_add.actor, '') = '' OR octet_length(pml_token_add.actor) > 256
        OR pml_token_add.actor ~ '[[:cntrl:]]' THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'Invalid actor',
      HINT = 'Say who holds the token, in 1 to 256 bytes without control characters.';
  ELSIF pml_token_add.expires_at <= now() THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'The token would have expired already',
      HINT = 'Give a later expires_at, or none.';
  END IF;
  INSERT INTO pml.tokens AS t (token_hash, org, project, actor, label, expires_at, created_by)
  VALUES (lower(pml_token_add.token_hash), pml_token_add.org, pml_token_add.project, pml_token_add.actor,
          pml_token_add.label, pml_token_add.expires_at, pml_internal.pml_actor())
  ON CONFLICT (token_hash) DO NOTHING
  RETURNING t.id INTO new_id;
  IF new_id IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'This token is already known',
      HINT = 'Make another one; a revoked token can''t be used again.';
  END IF;
  RETURN new_id;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_token_add(text, text, text, text, text, timestamptz) IS
  'Makes a token valid for an actor in a scope, by its hash (admins only); returns its id';

CREATE FUNCTION pml_internal.pml_token_check(token_hash text, OUT id uuid, OUT org text, OUT project text, OUT actor text)
  RETURNS SETOF record
  LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  held pml.tokens;
BEGIN
  SELECT * INTO held FROM pml.tokens t
  WHERE t.token_hash = lower(pml_token_check.token_hash) AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > now());
  IF NOT FOUND THEN
    RETURN;
  END IF;
  -- At most one write a minute, and none on a standby.
  IF (held.last_used_at IS NULL OR held.last_used_at < now() - interval '1 minute') AND NOT pg_is_in_recovery() THEN
    UPDATE pml.tokens u SET last_used_at = now()
    WHERE u.id = (SELECT t.id FROM pml.tokens t WHERE t.id = held.id FOR NO KEY UPDATE SKIP LOCKED);
  END IF;
  id := held.id;
  org := held.org;
  project := held.project;
  actor := held.actor;
  RETURN NEXT;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_token_check(text) IS
  'Scope and actor of a token; no row if it isn''t valid (proxies only)';

CREATE FUNCTION pml_internal.pml_token_list()
  RETURNS TABLE (id uuid, label text, org text, project text, actor text, created_by text, created_at timestamptz,
                 expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz, valid boolean)
  LANGUAGE plpgsql STABLE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  PERFORM pml_internal.pml_check_admin('list tokens');
  RETURN QUERY
    SELECT t.id, t.label, t.org::text, t.project::text, t.actor, t.created_by, t.created_at, t.expires_at,
           t.revoked_at, t.last_used_at, t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
    FROM pml.tokens t ORDER BY t.created_at, t.id;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_token_list() IS 'All tokens, without their hashes (admins only)';

CREATE FUNCTION pml_internal.pml_token_revoke(id uuid) RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  PERFORM pml_internal.pml_check_admin('revoke tokens');
  UPDATE pml.tokens t SET revoked_at = now() WHERE t.id = pml_token_revoke.id AND t.revoked_at IS NULL;
  RETURN FOUND;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_token_revoke(uuid) IS
  'Revokes a token at once, on all proxies (admins only); whether it was valid';

CREATE FUNCTION pml_internal.pml_tokens_notify() RETURNS trigger
  LANGUAGE plpgsql SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'pml.tokens'::regclass THEN
    PERFORM pml_internal.pml_refuse_table(TG_RELID);
  END IF;
  PERFORM pg_notify('pml_tokens_changed', OLD.id::text);
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_tokens_notify() IS 'Trigger: notifies proxies to drop a token from their caches';
