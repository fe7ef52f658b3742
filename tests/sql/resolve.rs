//! Resolving specs: every form, also on standbys and in parallel queries.

use pml_tests::{Ask, Database};

fn registered(db: &mut postgres::Client) -> String {
    db.text(
        "SELECT pml_register('return 1', 'fs:read', visibility => 'public', version_tag => 'v1.0.0')",
        &[],
    )
    .unwrap()
}

#[test]
fn every_form_means_the_same_record() {
    let mut db = Database::new().connect();
    let fqdn = registered(&mut db);
    for spec in ["fs:read", "local.default:fs:read", &fqdn] {
        for version in
            ["", "@latest", "@v1", "@v1.0", "@v1.0.0", "@1.0.0", "@2999-01-01", "@2999-01-01T00:00:00Z"]
        {
            let spec = format!("{spec}{version}");
            assert_eq!(db.text("SELECT pml_resolve($1)", &[&spec]).unwrap(), fqdn, "{spec}");
        }
    }
}

#[test]
fn names_are_looked_up_in_the_current_scope() {
    let mut db = Database::new().connect();
    let fqdn = registered(&mut db);
    db.batch_execute("SET pml.org = 'acme'; SET pml.project = 'webapp'").unwrap();
    assert_eq!(db.refusal("SELECT pml_resolve('fs:read')").code().code(), "PM001");
    assert_eq!(db.text("SELECT pml_resolve('local.default:fs:read')", &[]).unwrap(), fqdn);
}

#[test]
fn an_alias_resolves_with_a_warning() {
    let (mut db, notices) = Database::new().connect_with_notices();
    let fqdn = registered(&mut db);
    db.batch_execute("SELECT pml_rename('fs:read', 'fs:load')").unwrap();
    notices.take();
    assert_eq!(db.text("SELECT pml_resolve('fs:read')", &[]).unwrap(), fqdn);
    let warnings = notices.take();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].severity(), "WARNING");
    assert_eq!(warnings[0].message(), "Deprecated: using alias \"fs:read\" for capability \"fs:load\"");
    assert_eq!(db.text("SELECT via_alias FROM pml_lookup('local.default:fs:read')", &[]).unwrap(), "fs:read");
    assert_eq!(db.text("SELECT via_alias FROM pml_lookup('fs:load')", &[]), None);
}

/// Two names in the default scope whose hashes in the indexes are equal.
fn names_of_one_hash(db: &mut postgres::Client) -> (String, String) {
    let row = db
        .query_one(
            "SELECT min(name), max(name) FROM (SELECT 'n:' || number AS name FROM generate_series(1, 400000) AS number) AS n
             GROUP BY hashtext('local.default:' || name COLLATE \"C\") HAVING count(*) > 1 LIMIT 1",
            &[],
        )
        .unwrap();
    (row.get(0), row.get(1))
}

#[test]
fn another_name_of_the_same_hash_is_another_name() {
    let mut db = Database::new().connect();
    let (one, other) = names_of_one_hash(&mut db);
    let resolve = "SELECT pml_resolve($1)";
    let first = db.text("SELECT pml_register('return 1', $1)", &[&one]).unwrap();
    assert!(db.query_one(resolve, &[&other]).is_err());
    let second = db.text("SELECT pml_register('return 2', $1)", &[&other]).unwrap();
    assert_eq!(db.text(resolve, &[&one]).as_ref(), Some(&first));
    assert_eq!(db.text(resolve, &[&other]).as_ref(), Some(&second));
    db.batch_execute(&format!(
        "SELECT pml_rename('{one}', 'renamed'), pml_rename('{other}', 'also_renamed')"
    ))
    .unwrap();
    assert_eq!(db.text(resolve, &[&one]).as_ref(), Some(&first));
    assert_eq!(db.text(resolve, &[&other]).as_ref(), Some(&second));
}

#[test]
fn reading_needs_no_transaction_id_and_works_read_only() {
    let mut db = Database::new().connect();
    let fqdn = registered(&mut db);
    db.batch_execute("SELECT pml_rename('fs:read', 'fs:load')").unwrap();
    db.batch_execute("BEGIN READ ONLY").unwrap();
    for spec in ["fs:load", "fs:read", "fs:load@v1", "fs:load@2999-01-01"] {
        assert_eq!(db.text("SELECT pml_resolve($1)", &[&spec]).unwrap(), fqdn);
        db.query("SELECT * FROM pml_lookup($1)", &[&spec]).unwrap();
        db.query("SELECT pml_whois($1), pml_code($1)", &[&spec]).unwrap();
        db.query("SELECT * FROM pml_history($1)", &[&spec]).unwrap();
    }
    db.query("SELECT * FROM pml_list()", &[]).unwrap();
    assert_eq!(db.text("SELECT pg_current_xact_id_if_assigned()::text", &[]), None);
    db.batch_execute("COMMIT").unwrap();
}

#[test]
fn it_runs_in_parallel_workers() {
    let mut db = Database::new().connect();
    let fqdn = registered(&mut db);
    db.batch_execute(
        "CREATE TABLE specs AS SELECT 'fs:read'::text AS spec FROM generate_series(1, 20000);
         SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
         SET pml.org = 'local'; SET max_parallel_workers_per_gather = 2",
    )
    .unwrap();
    let query = "SELECT count(*) FROM specs WHERE pml_resolve(spec) = (SELECT id FROM pml.capability_records WHERE display_name = 'fs:read')";
    let plan = db.texts(&format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {query}")).join("\n");
    assert!(plan.contains("Workers Launched: 2") || plan.contains("Workers Launched: 1"), "{plan}");
    assert_eq!(db.number(query), 20_000, "{fqdn}");
}

#[test]
fn a_snapshot_is_kept_under_repeatable_read() {
    let database = Database::new();
    let (mut reader, mut writer) = (database.connect(), database.connect());
    let fqdn = registered(&mut writer);
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").unwrap();
    writer
        .batch_execute("SELECT pml_rename('fs:read', 'fs:load'); SELECT pml_release_alias('fs:read')")
        .unwrap();
    assert_eq!(reader.text("SELECT pml_resolve('fs:read')", &[]).unwrap(), fqdn);
    assert_eq!(reader.refusal("SELECT pml_resolve('fs:load')").code().code(), "PM001");
    reader.batch_execute("ROLLBACK").unwrap();
    assert_eq!(reader.text("SELECT pml_resolve('fs:load')", &[]).unwrap(), fqdn);
}

#[test]
fn a_plan_made_before_the_extension_was_made_again_still_works() {
    let mut db = Database::new().connect();
    let statement = db.prepare("SELECT pml_resolve('fs:read')").unwrap();
    let fqdn = registered(&mut db);
    assert_eq!(db.query_one(&statement, &[]).unwrap().get::<_, String>(0), fqdn);
}

#[test]
fn an_extension_made_again_is_found_by_sessions_that_knew_the_old_one() {
    let database = Database::new();
    let (mut old, mut db) = (database.connect(), database.connect());
    registered(&mut db);
    old.query("SELECT pml_resolve('fs:read')", &[]).unwrap();
    db.batch_execute("DROP EXTENSION pml").unwrap();
    db.batch_execute("CREATE EXTENSION pml").unwrap();
    let fqdn = registered(&mut db);
    for session in [&mut old, &mut db] {
        assert_eq!(session.text("SELECT pml_resolve('fs:read')", &[]).unwrap(), fqdn);
    }
}

#[test]
fn a_tool_prefix_and_an_fqdn_without_its_hash_are_understood() {
    let mut db = Database::new().connect();
    let fqdn = registered(&mut db);
    for spec in [
        "cap:fs:read",
        "cap:local.default:fs:read@v1",
        "local.default.fs.read",
        "local.default.fs.read@v1.0.0",
    ] {
        assert_eq!(db.text("SELECT pml_resolve($1)", &[&spec]).unwrap(), fqdn, "{spec}");
    }
    // A name of its own comes first.
    let own = "INSERT INTO pml.capability_records (display_name, code_snippet) VALUES ('cap:fs:read', 'return 2') RETURNING id";
    let own = db.text(own, &[]).unwrap();
    assert_eq!(db.text("SELECT pml_resolve('cap:fs:read')", &[]).unwrap(), own);
    // The FQDN is that of its birth, so it stays when the name changes.
    db.batch_execute("SELECT pml_rename('fs:read', 'fs:load'); SELECT pml_register('return 3', 'fs:read_b')")
        .unwrap();
    assert_eq!(db.text("SELECT pml_resolve('local.default.fs.read')", &[]).unwrap(), fqdn);
    let error = db.refusal("SELECT pml_resolve('cap:fs:lood')");
    assert_eq!((error.code().code(), error.message()), ("PM001", "Capability not found: fs:lood"));
    assert_eq!(error.hint(), Some("Did you mean \"fs:load\"?"));
    assert_eq!(db.refusal("SELECT pml_resolve('local.default.fs.other')").code().code(), "PM001");
}

#[test]
fn an_fqdn_without_its_hash_must_mean_one_that_is_seen() {
    let mut db = Database::new().connect();
    let first = registered(&mut db);
    db.batch_execute("SELECT pml_rename('fs:read', 'fs:a'); SELECT pml_release_alias('fs:read')").unwrap();
    let second = db.text("SELECT pml_register('return 2', 'fs:read')", &[]).unwrap();
    let error = db.refusal("SELECT pml_resolve('local.default.fs.read')");
    assert_eq!(
        (error.code().code(), error.message()),
        ("PM001", "Capability not found: local.default.fs.read")
    );
    let detail = error.detail().unwrap();
    assert!(detail.contains(&first) && detail.contains(&second), "{detail}");
    // Whoever sees one of them only means that one; a deleted one isn't meant.
    db.batch_execute("SELECT pml_delete('fs:a')").unwrap();
    assert_eq!(db.text("SELECT pml_resolve('local.default.fs.read')", &[]).unwrap(), second);
}

#[test]
fn a_parallel_query_asks_nothing_that_it_may_not() {
    let mut db = Database::new().connect();
    // Called debug_parallel_query since Postgres 16.
    let force = "SELECT set_config(name, 'on', false) FROM pg_settings
                 WHERE name IN ('force_parallel_mode', 'debug_parallel_query')";
    db.query(force, &[]).unwrap();
    db.batch_execute("SELECT pml_register('return 1', 'one')").unwrap();
    db.batch_execute("BEGIN; SELECT pg_current_xact_id()").unwrap();
    db.batch_execute("CREATE TEMP TABLE analyzed AS SELECT pml_analyze('return mcp.a.one()'), pml_actor()")
        .unwrap();
    let error = db.refusal("CREATE TEMP TABLE resolved AS SELECT pml_resolve('nowhere')");
    assert_eq!((error.code().code(), error.message()), ("PM001", "Capability not found: nowhere"));
}
