//! Who sees what: every role against every visibility, own and foreign scopes, by every way of reading.

use pml_tests::{Ask, Database, failure};
use postgres::Client;

pub(super) const SCOPES: [(&str, &str); 3] = [("acme", "webapp"), ("acme", "mobile"), ("other", "webapp")];
const VISIBILITIES: [&str; 4] = ["private", "project", "org", "public"];

/// Someone who reads, and where that one may act.
pub(super) struct Reader {
    /// The role that logs in; None is the superuser.
    pub(super) role: Option<&'static str>,
    pub(super) member_of: &'static [&'static str],
    /// What the session sets.
    pub(super) scope: (&'static str, &'static str),
    pub(super) actor: Option<&'static str>,
    pub(super) sees_all: bool,
    /// The scopes from which it sees; for a proxy the one that it set, for a role those granted.
    pub(super) sees_from: &'static [(&'static str, &'static str)],
}

pub(super) const READERS: [Reader; 7] = [
    Reader { role: None, member_of: &[], scope: SCOPES[0], actor: None, sees_all: true, sees_from: &[] },
    Reader {
        role: Some("boss"),
        member_of: &["pml_admin"],
        scope: SCOPES[2],
        actor: None,
        sees_all: true,
        sees_from: &[],
    },
    Reader {
        role: Some("gate"),
        member_of: &["pml_proxy"],
        scope: SCOPES[0],
        actor: Some("alice"),
        sees_all: false,
        sees_from: &[SCOPES[0]],
    },
    Reader {
        role: Some("gate2"),
        member_of: &["pml_proxy"],
        scope: SCOPES[2],
        actor: Some("alice"),
        sees_all: false,
        sees_from: &[SCOPES[2]],
    },
    // Says that it is alice, but is itself.
    Reader {
        role: Some("bob"),
        member_of: &[],
        scope: SCOPES[0],
        actor: Some("alice"),
        sees_all: false,
        sees_from: &[SCOPES[0]],
    },
    Reader {
        role: Some("guest"),
        member_of: &[],
        scope: SCOPES[1],
        actor: Some("alice"),
        sees_all: false,
        sees_from: &[],
    },
    Reader {
        role: Some("carol"),
        member_of: &["TEAM"],
        scope: SCOPES[1],
        actor: None,
        sees_all: false,
        sees_from: &[SCOPES[1]],
    },
];

#[derive(Debug, Clone)]
pub(super) struct Secret {
    scope: (String, String),
    visibility: String,
    creator: String,
    name: String,
    alias: String,
    fqdn: String,
}

pub(super) fn name_of(database: &Database, person: &str) -> String {
    if person == "bob" { database.role("bob") } else { person.to_owned() }
}

pub(super) fn setup(database: &Database) -> Vec<Secret> {
    let mut db = database.connect();
    db.batch_execute(&format!("CREATE ROLE {}", database.role("team"))).unwrap();
    for reader in READERS.iter().filter(|reader| reader.role.is_some()) {
        let team = database.role("team");
        let groups: Vec<&str> = reader
            .member_of
            .iter()
            .map(|group| if *group == "TEAM" { team.as_str() } else { group })
            .collect();
        database.create_role(reader.role.unwrap(), &groups);
    }
    db.batch_execute(&format!(
        "SELECT pml_grant('{}', 'acme', 'webapp'), pml_grant('{}', 'acme', 'mobile')",
        database.role("bob"),
        database.role("team")
    ))
    .unwrap();
    let mut secrets = Vec::new();
    for (org, project) in SCOPES {
        for visibility in VISIBILITIES {
            for person in ["alice", "bob"] {
                let creator = name_of(database, person);
                let name = format!("n{}:{visibility}_{person}", secrets.len());
                let alias = format!("was_{}", secrets.len());
                db.batch_execute(&format!(
                    "SET pml.org = '{org}'; SET pml.project = '{project}'; SET pml.actor = '{creator}'"
                ))
                .unwrap();
                let code = format!("return 'secret {}'", secrets.len());
                let fqdn = db
                    .text("SELECT pml_register($1, $2, visibility => $3)", &[&code, &alias, &visibility])
                    .unwrap();
                db.query("SELECT pml_rename($1, $2)", &[&fqdn, &name]).unwrap();
                secrets.push(Secret {
                    scope: (org.into(), project.into()),
                    visibility: visibility.into(),
                    creator,
                    name,
                    alias,
                    fqdn,
                });
            }
        }
    }
    secrets
}

pub(super) fn connect(database: &Database, reader: &Reader) -> Client {
    let mut db = reader.role.map_or_else(|| database.connect(), |role| database.connect_as(role));
    let (org, project) = reader.scope;
    db.batch_execute(&format!(
        "SET client_min_messages = error; SET pml.org = '{org}'; SET pml.project = '{project}'; SET pml.actor = '{}'",
        reader.actor.unwrap_or_default()
    ))
    .unwrap();
    db
}

/// The role table of the specification, written down a second time.
fn should_see(database: &Database, reader: &Reader, secret: &Secret) -> bool {
    let is_proxy = reader.member_of.contains(&"pml_proxy");
    let actor = match reader.role {
        Some(_) if is_proxy => reader.actor.unwrap_or_default().to_owned(),
        Some(role) => database.role(role),
        None => String::new(),
    };
    reader.sees_all
        || secret.visibility == "public"
        || reader.sees_from.iter().any(|(org, project)| {
            let same_org = secret.scope.0 == *org;
            let same_project = same_org && secret.scope.1 == *project;
            match secret.visibility.as_str() {
                "org" => same_org,
                "project" => same_project,
                _ => same_project && secret.creator == actor,
            }
        })
}

#[test]
fn nothing_is_seen_that_should_not_be() {
    let database = Database::new();
    let secrets = setup(&database);
    let mut admin = database.connect();
    for reader in &READERS {
        let mut db = connect(&database, reader);
        let visible: Vec<&Secret> =
            secrets.iter().filter(|secret| should_see(&database, reader, secret)).collect();
        let who = format!("{:?}", reader.role);

        // By spec: by name, alias and FQDN, through every function that reads.
        for secret in &secrets {
            let scope = format!("{}.{}", secret.scope.0, secret.scope.1);
            for spec in
                [secret.fqdn.clone(), format!("{scope}:{}", secret.name), format!("{scope}:{}", secret.alias)]
            {
                for call in [
                    "SELECT pml_resolve($1)",
                    "SELECT fqdn FROM pml_lookup($1)",
                    "SELECT pml_code($1)",
                    "SELECT pml_whois($1)::text",
                    "SELECT diff FROM pml_history($1)",
                    "SELECT fqdn FROM pml_dependents($1)",
                ] {
                    let result = db.query(call, &[&spec]);
                    if should_see(&database, reader, secret) {
                        result.unwrap_or_else(|error| panic!("{who} {call} {spec}: {error:?}"));
                        continue;
                    }
                    // Not visible and not there are the same answer, to the letter.
                    let hidden = failure(result);
                    assert_eq!(hidden.code().code(), "PM001", "{who} {call} {spec}");
                    assert_eq!(hidden.message(), format!("Capability not found: {spec}"));
                    assert_eq!(hidden.detail(), None);
                    let hint = hidden.hint().unwrap_or_default();
                    for other in secrets.iter().filter(|other| !should_see(&database, reader, other)) {
                        assert!(!hint.contains(&other.name), "{who}: {hint}");
                    }
                }
            }
        }

        // By plain SQL on every view that holds anything of them.
        let mut expected: Vec<String> = visible.iter().map(|secret| secret.fqdn.clone()).collect();
        expected.sort();
        for view in ["capabilities", "capability_history", "aliases", "renames"] {
            let seen = db.texts(&format!(
                "SELECT DISTINCT fqdn FROM pml.{view} WHERE fqdn NOT LIKE 'pml.std.%' ORDER BY 1"
            ));
            assert_eq!(seen, expected, "{who} {view}");
            let mut copied = String::new();
            std::io::Read::read_to_string(
                &mut db.copy_out(&format!("COPY (SELECT * FROM pml.{view}) TO STDOUT")).unwrap(),
                &mut copied,
            )
            .unwrap();
            for secret in &secrets {
                let seen = should_see(&database, reader, secret);
                assert_eq!(copied.contains(&secret.fqdn), seen, "{who} COPY {view} {secret:?}");
            }
        }

        // By lists.
        let has_scope = reader.role != Some("guest");
        if has_scope {
            for visibility in [None, Some("org"), Some("public")] {
                let listed: Vec<String> = db
                    .query("SELECT fqdn FROM pml_list(visibility => $1)", &[&visibility])
                    .unwrap()
                    .iter()
                    .map(|row| row.get(0))
                    .collect();
                for fqdn in &listed {
                    assert!(visible.iter().any(|secret| secret.fqdn == *fqdn), "{who} lists {fqdn}");
                }
            }
            let here = (reader.scope.0.to_owned(), reader.scope.1.to_owned());
            let mut callable: Vec<&str> = visible
                .iter()
                .filter(|secret| secret.scope == here)
                .map(|secret| secret.fqdn.as_str())
                .collect();
            callable.sort_unstable();
            assert_eq!(db.texts("SELECT fqdn FROM pml_tools() ORDER BY 1"), callable, "{who} tools");
            for secret in secrets.iter().filter(|secret| secret.scope == here) {
                for name in [&secret.name, &secret.alias] {
                    let wire = admin.text("SELECT pml_internal.pml_tool_name($1, 'util', '', 0)", &[name]);
                    let begun = db.query("SELECT pml_begin(jsonb_build_object('tool', $1::text))", &[&wire]);
                    assert_eq!(begun.is_ok(), should_see(&database, reader, secret), "{who} {name}");
                }
            }
        } else {
            assert_eq!(db.refusal("SELECT * FROM pml_list()").code().code(), "PM006");
            assert_eq!(db.refusal("SELECT pml_resolve('anything')").code().code(), "PM006");
            assert_eq!(db.refusal("SELECT pml_register('return 1')").code().code(), "PM006");
        }
    }
}

#[test]
fn nothing_is_changed_that_should_not_be() {
    let database = Database::new();
    let secrets = setup(&database);
    for reader in READERS.iter().filter(|reader| !reader.sees_all) {
        let mut db = connect(&database, reader);
        let may_act = |secret: &Secret| {
            reader
                .sees_from
                .iter()
                .any(|(org, project)| secret.scope == ((*org).to_owned(), (*project).to_owned()))
        };
        for secret in &secrets {
            let seen = should_see(&database, reader, secret);
            for call in [
                "SELECT pml_update($1, 'return 0')",
                "SELECT pml_rename($1, 'stolen')",
                "SELECT pml_delete($1)",
                "SELECT pml_rollback($1)",
            ] {
                db.batch_execute("BEGIN").unwrap();
                let result = db.query(call, &[&secret.fqdn]);
                let code =
                    result.err().map_or("00000".to_owned(), |error| error.code().unwrap().code().to_owned());
                db.batch_execute("ROLLBACK").unwrap();
                let expected = match (seen, may_act(secret)) {
                    (false, _) => "PM001",
                    (true, false) => "PM006",
                    (true, true) => "00000",
                };
                assert_eq!(code, expected, "{:?} {call} {secret:?}", reader.role);
            }
        }
        for statement in [
            "INSERT INTO pml.capability_versions (capability_fqdn, version, code_hash, updated_by) VALUES ('x', 1, 'x', 'x')",
            "INSERT INTO pml.scope_grants (role_name, org, project, granted_by) VALUES (current_user, 'other', 'webapp', 'me')",
            "INSERT INTO pml.capability_aliases (alias, org, project, target_fqdn) VALUES ('x', 'acme', 'webapp', 'x')",
            "DELETE FROM pml.capability_records",
            "UPDATE pml.capability_records SET description = 'x'",
            "SELECT pml_internal.pml_claim_name('a', 'b', 'c', 'd', 'name')",
            "SELECT pml_internal.pml_take_tool_name('a', 'b', 'tool', 'd', NULL)",
            "INSERT INTO pml.tool_names (org, project, tool_name, kind, name) VALUES ('acme', 'webapp', 'x', 'tool', 'x')",
            "DELETE FROM pml.tool_names",
        ] {
            assert_eq!(db.refusal(statement).code().code(), "42501", "{:?} {statement}", reader.role);
        }
        let grant = "SELECT pml_grant(current_user, 'other', 'webapp')";
        assert_eq!(db.refusal(grant).code().code(), "PM006", "{:?}", reader.role);
    }
}

#[test]
fn the_creator_can_not_be_forged() {
    let database = Database::new();
    setup(&database);
    let mut db = database.connect_as("bob");
    db.batch_execute("SET pml.org = 'acme'; SET pml.project = 'webapp'; SET pml.actor = 'alice'").unwrap();
    db.batch_execute("SELECT pml_register('return 77', 'mine')").unwrap();
    let row =
        db.query_one("SELECT created_by, verified FROM pml.capabilities WHERE name = 'mine'", &[]).unwrap();
    assert_eq!((row.get::<_, String>(0), row.get::<_, bool>(1)), (database.role("bob"), false));
    // By hand an admin may write for others, and for nobody else than the actor whom it says it is.
    let mut boss = database.connect_as("boss");
    boss.batch_execute("INSERT INTO pml.capability_records (display_name, code_snippet, created_by) VALUES ('hers', 'return 78', 'alice')").unwrap();
    let creator = boss.text("SELECT created_by FROM pml.capability_records WHERE display_name = 'hers'", &[]);
    assert_eq!(creator.unwrap(), "alice");
}

#[test]
fn a_taken_name_says_nothing_about_who_has_it() {
    let database = Database::new();
    setup(&database);
    let mut db = database.connect();
    db.batch_execute("SET pml.org = 'acme'; SET pml.project = 'webapp'; SET pml.actor = 'alice'; SELECT pml_register('return \"hidden\"', 'hush'); SELECT pml_rename('hush', 'quiet')").unwrap();
    let mut bob = database.connect_as("bob");
    bob.batch_execute("SET pml.org = 'acme'; SET pml.project = 'webapp'").unwrap();
    bob.batch_execute("SELECT pml_register('return 2', 'bobs')").unwrap();
    for name in ["hush", "quiet"] {
        for statement in [
            format!("SELECT pml_register('return 1', '{name}')"),
            format!("SELECT pml_rename('bobs', '{name}')"),
        ] {
            let error = bob.refusal(&statement);
            assert_eq!(error.code().code(), "PM003", "{statement}");
            let said = format!("{} {:?} {:?}", error.message(), error.detail(), error.hint());
            assert!(!said.contains("alice") && !said.contains("alias"), "{said}");
            assert!(!(name == "hush" && said.contains("quiet")), "{said}");
        }
    }
}

#[test]
fn the_same_code_of_someone_else_is_not_found_out() {
    let database = Database::new();
    setup(&database);
    let mut db = database.connect();
    db.batch_execute("SET pml.org = 'acme'; SET pml.project = 'webapp'; SET pml.actor = 'alice'").unwrap();
    let hers = db.text("SELECT pml_register('return \"same\"')", &[]).unwrap();
    let mut bob = database.connect_as("bob");
    bob.batch_execute("SET pml.org = 'acme'; SET pml.project = 'webapp'").unwrap();
    let his = bob.text("SELECT pml_register('return \"same\"')", &[]).unwrap();
    assert!(his.starts_with(&hers) && his.len() == hers.len() + 1, "{hers} {his}");
    assert_eq!(db.number("SELECT usage_count FROM pml.capability_records WHERE code_snippet = 'return \"same\"' AND created_by = 'alice'"), 0);
}

#[test]
fn no_statistics_are_kept_of_what_is_hidden() {
    let database = Database::new();
    setup(&database);
    let mut db = database.connect();
    db.batch_execute("ANALYZE").unwrap();
    // Of a scope no more than what the commonest is.
    let kept = db.texts(
        "SELECT tablename || '.' || attname FROM pg_stats WHERE schemaname = 'pml'
         AND (attname NOT IN ('org', 'project') OR cardinality(most_common_freqs) > 1 OR cardinality(histogram_bounds) > 2)",
    );
    assert_eq!(kept, Vec::<String>::new());
}

#[test]
fn a_grant_ends_with_its_revocation() {
    let database = Database::new();
    setup(&database);
    let mut bob = database.connect_as("bob");
    bob.batch_execute(
        "SET pml.org = 'acme'; SET pml.project = 'webapp'; SELECT pml_register('return 5', 'five')",
    )
    .unwrap();
    database
        .connect()
        .batch_execute(&format!("SELECT pml_revoke('{}', 'acme', 'webapp')", database.role("bob")))
        .unwrap();
    assert_eq!(bob.refusal("SELECT pml_resolve('five')").code().code(), "PM006");
    assert_eq!(bob.number("SELECT count(*) FROM pml.capabilities WHERE name = 'five'"), 0);
}
