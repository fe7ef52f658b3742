-- The scope and actor of a session (pml.org, pml.project, pml.actor), and the grants that allow it.

CREATE TABLE pml.scope_grants (
  role_name name NOT NULL,
  org text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  granted_by text NOT NULL,
  granted_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (role_name, org, project)
);
COMMENT ON TABLE pml.scope_grants IS 'The scopes in which an ordinary role may act (pml_grant, pml_revoke)';
COMMENT ON COLUMN pml.scope_grants.role_name IS 'The database role; its members have the grant too';
COMMENT ON COLUMN pml.scope_grants.org IS 'The organisation';
COMMENT ON COLUMN pml.scope_grants.project IS 'The project in it';
COMMENT ON COLUMN pml.scope_grants.granted_by IS 'The role that granted it';
COMMENT ON COLUMN pml.scope_grants.granted_at IS 'When it was given';

CREATE FUNCTION pml_internal.pml_org() RETURNS text
  LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_org_wrapper';
COMMENT ON FUNCTION pml_internal.pml_org() IS 'The organisation in which this session acts (setting pml.org)';

CREATE FUNCTION pml_internal.pml_project() RETURNS text
  LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_project_wrapper';
COMMENT ON FUNCTION pml_internal.pml_project() IS 'The project in which this session acts (setting pml.project)';

CREATE FUNCTION pml_internal.pml_actor() RETURNS text
  LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'pml_actor_wrapper';
COMMENT ON FUNCTION pml_internal.pml_actor() IS
  'For whom this session acts: the setting pml.actor for admins and proxies, the role itself for anyone else';

CREATE FUNCTION pml_internal.pml_caller() RETURNS oid
  LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'pml_caller_wrapper';
COMMENT ON FUNCTION pml_internal.pml_caller() IS
  'The role that called the public function which is running, or the current user';

CREATE FUNCTION pml_internal.pml_is_admin() RETURNS boolean
  LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'pml_is_admin_wrapper';
COMMENT ON FUNCTION pml_internal.pml_is_admin() IS 'Whether the current user is a superuser or a member of pml_admin';

CREATE FUNCTION pml_internal.pml_check_admin(what text) RETURNS void
  LANGUAGE plpgsql STABLE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT pml_internal.pml_is_admin() THEN
    RAISE EXCEPTION USING ERRCODE = 'PM006', MESSAGE = format('Only an admin may %s', what),
      HINT = 'Log in as a member of pml_admin.';
  END IF;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_check_admin(text) IS 'An error unless the current user is an admin';

CREATE FUNCTION pml_internal.pml_may_act(org text, project text) RETURNS boolean
  LANGUAGE c STABLE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'pml_may_act_wrapper';
COMMENT ON FUNCTION pml_internal.pml_may_act(text, text) IS 'Whether the current user may change things in this scope';

CREATE FUNCTION pml_internal.pml_check_may_act(org text, project text) RETURNS void
  LANGUAGE c STABLE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'pml_check_may_act_wrapper';
COMMENT ON FUNCTION pml_internal.pml_check_may_act(text, text) IS 'An error unless the current user may act in this scope';

CREATE FUNCTION pml_internal.pml_visible(org text, project text, visibility text, created_by text) RETURNS boolean
  LANGUAGE c STABLE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'pml_visible_wrapper';
COMMENT ON FUNCTION pml_internal.pml_visible(text, text, text, text) IS
  'Whether the current user sees a record of this scope, visibility and creator: the rule behind every policy';

CREATE FUNCTION pml_internal.pml_visible_from(
    viewer_org text, viewer_project text, viewer text, org text, project text, visibility text, created_by text)
  RETURNS boolean
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_visible_from_wrapper';
COMMENT ON FUNCTION pml_internal.pml_visible_from(text, text, text, text, text, text, text) IS
  'The same for an actor in a scope, whoever asks: what triggers derive for a record comes only from what its creator sees';

CREATE FUNCTION pml_internal.pml_act_as(org text, project text, actor text, request_id text) RETURNS boolean
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pml_act_as_wrapper';
COMMENT ON FUNCTION pml_internal.pml_act_as(text, text, text, text) IS
  'Sets scope and actor of a proxy for this transaction, and application_name to pml/<request>';

CREATE FUNCTION pml_internal.pml_grant(role_name name, org text, project text) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pml_internal.pml_check_admin('grant scopes');
  IF pml_grant.role_name IS NULL OR NOT EXISTS (SELECT FROM pg_roles WHERE rolname = pml_grant.role_name) THEN
    RAISE EXCEPTION USING ERRCODE = 'undefined_object',
      MESSAGE = format('Role "%s" does not exist', pml_grant.role_name),
      HINT = 'Create it first: CREATE ROLE name LOGIN.';
  END IF;
  PERFORM pml_internal.pml_check_part('org', pml_grant.org), pml_internal.pml_check_part('project', pml_grant.project);
  INSERT INTO pml.scope_grants AS g (role_name, org, project, granted_by)
  VALUES (pml_grant.role_name, pml_grant.org, pml_grant.project, pml_internal.pml_actor())
  ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_grant(name, text, text) IS 'Lets a role act in a scope (admins only)';

CREATE FUNCTION pml_internal.pml_revoke(role_name name, org text, project text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY INVOKER
  SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  PERFORM pml_internal.pml_check_admin('revoke scopes');
  DELETE FROM pml.scope_grants g
  WHERE g.role_name = pml_revoke.role_name AND g.org = pml_revoke.org AND g.project = pml_revoke.project;
  RETURN FOUND;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_revoke(name, text, text) IS
  'Revokes a grant (admins only); whether there was one';
