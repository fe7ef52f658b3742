//! Versions: which one a specifier matches, and immutability.

use pml_tests::{Ask, Database, failure};

/// Versions 1 to 7, with tags on some of them; each returns its own number.
fn with_versions() -> postgres::Client {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'my-reader')").unwrap();
    for (number, tag) in [
        (2, None),
        (3, Some("v2.0.0")),
        (4, Some("v2.10.0")),
        (5, Some("v2.2.0")),
        (6, Some("v3.0.0-rc.1")),
        (7, Some("v4.1.0-beta.2")),
        (8, Some("v4.1.0")),
        (9, Some("v4.1.0-rc.11")),
    ] {
        let code = format!("return {number}");
        db.query("SELECT pml_update('my-reader', $1, $2, 'step')", &[&code, &tag]).unwrap();
    }
    db
}

#[test]
fn specifiers_pick_by_tag_then_by_number() {
    let mut db = with_versions();
    for (spec, number) in [
        ("my-reader", 9),
        ("my-reader@latest", 9),
        ("my-reader@v1", 1), // no tag has major 1
        ("my-reader@v2", 4), // v2.10.0 is newer than v2.2.0
        ("my-reader@v2.2", 5),
        ("my-reader@v2.0", 3),
        ("my-reader@v2.10.0", 4),
        ("my-reader@2.10.0", 4),
        ("my-reader@v3", 6), // only a pre-release
        ("my-reader@v4", 8), // the release is newer than its pre-releases
        ("my-reader@v4.1.0-rc.11", 9),
        ("my-reader@v5", 5),
        ("my-reader@v9", 9),
    ] {
        let code = db.text("SELECT pml_code($1)", &[&spec]).unwrap();
        assert_eq!(code, format!("return {number}"), "{spec}");
        let version: i32 = db.query_one("SELECT version FROM pml_lookup($1)", &[&spec]).unwrap().get(0);
        assert_eq!(version, number, "{spec}");
    }
}

#[test]
fn a_date_picks_what_was_current_at_its_end() {
    let mut db = Database::new().connect();
    // Written by an admin as a restore would, so that the times are known.
    db.batch_execute(
        "INSERT INTO pml.capability_versions (capability_fqdn, version, code_snippet, code_hash, updated_by, updated_at)
         SELECT 'local.default.util.old.abcd', v, 'return ' || v, 'abcd', 'me', t::timestamptz
         FROM (VALUES (1, '2025-12-20 10:00+00'), (2, '2025-12-22 23:59:59.999999+00'), (3, '2025-12-23 00:00+00')) AS x (v, t);
         INSERT INTO pml.capability_records
           (id, display_name, org, project, namespace, action, hash, code_hash, created_by, updated_by, version, code_snippet)
         VALUES ('local.default.util.old.abcd', 'old', 'local', 'default', 'util', 'old', 'abcd', 'abcd', 'me', 'me', 3, 'return 3')",
    )
    .unwrap();
    for (spec, code) in [
        ("old@2025-12-20", "return 1"),
        ("old@2025-12-21", "return 1"),
        ("old@2025-12-22", "return 2"),
        ("old@2025-12-23", "return 3"),
        ("old@2025-12-20T10:00:00Z", "return 1"),
        ("old@2025-12-23T01:00:00+02:00", "return 1"),
        ("old@2025-12-23T00:00:00Z", "return 3"),
    ] {
        assert_eq!(db.text("SELECT pml_code($1)", &[&spec]).unwrap(), code, "{spec}");
    }
    let error = db.refusal("SELECT pml_resolve('old@2025-12-19')");
    assert_eq!((error.code().code(), error.message()), ("PM002", "Version 2025-12-19 not found for old"));
}

#[test]
fn a_missing_version_has_its_message() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'my-reader')").unwrap();
    for (spec, message) in [
        ("my-reader@v5", "Version v5 not found for my-reader"),
        ("my-reader@v1.2.0", "Version v1.2.0 not found for my-reader"),
        ("my-reader@99999999999", "Version v99999999999 not found for my-reader"),
    ] {
        let error = failure(db.query("SELECT pml_resolve($1)", &[&spec]));
        assert_eq!((error.code().code(), error.message()), ("PM002", message));
    }
}

#[test]
fn changing_the_code_by_hand_makes_the_next_version() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'x', version_tag => 'v1.0.0')").unwrap();
    db.batch_execute("UPDATE pml.capability_records SET code_snippet = 'return 2' WHERE display_name = 'x'")
        .unwrap();
    let row = db.query_one("SELECT version, version_tag FROM pml_lookup('x')", &[]).unwrap();
    assert_eq!((row.get::<_, i32>(0), row.get::<_, Option<String>>(1)), (2, None));
    assert_eq!(db.text("SELECT pml_code('x@v1.0.0')", &[]).unwrap(), "return 1");
    // What isn't code, schema or tag makes no version.
    db.batch_execute(
        "UPDATE pml.capability_records SET description = 'd', usage_count = 5 WHERE display_name = 'x'",
    )
    .unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pml_history('x')"), 2);
    let error =
        db.refusal("UPDATE pml.capability_records SET code_snippet = 'return (' WHERE display_name = 'x'");
    assert_eq!(error.code().code(), "PM005");
}

#[test]
fn the_same_code_again_is_no_new_version_unless_it_is_tagged() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'x')").unwrap();
    let update = |db: &mut postgres::Client, tag: Option<&str>| -> i32 {
        db.query_one("SELECT pml_update('x', 'return 1', $1, 'again')", &[&tag]).unwrap().get(0)
    };
    assert_eq!(update(&mut db, None), 1);
    assert_eq!(update(&mut db, Some("v1.0.0")), 2);
    let error = db.refusal("SELECT pml_update('x', 'return 2', '1.0.0')");
    assert_eq!((error.code().code(), error.message()), ("PM003", "Version tag v1.0.0 already exists for x"));
    assert_eq!(db.refusal("SELECT pml_update('x', 'return 2', 'one')").code().code(), "PM004");
}

#[test]
fn history_is_newest_first_with_diffs() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register(E'const a = 1;\\nreturn a;\\n', 'x')").unwrap();
    db.batch_execute("SELECT pml_update('x', E'const a = 2;\\nreturn a;\\n', 'v2.0.0', 'two is better')")
        .unwrap();
    let rows = db
        .query("SELECT version, version_tag, change_summary, diff, updated_by FROM pml_history('x')", &[])
        .unwrap();
    assert_eq!(rows.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(rows[0].get::<_, &str>(1), "v2.0.0");
    assert_eq!(rows[0].get::<_, &str>(2), "two is better");
    assert_eq!(
        rows[0].get::<_, &str>(3),
        "--- version 1\n+++ version 2\n@@ -1,2 +1,2 @@\n-const a = 1;\n+const a = 2;\n return a;\n"
    );
    assert_eq!(rows[0].get::<_, &str>(4), "postgres");
    assert_eq!(db.number("SELECT count(*) FROM pml_history('x@v1')"), 1);
}

#[test]
fn a_rollback_makes_an_old_version_the_newest() {
    let mut db = with_versions();
    let version: i32 = db.query_one("SELECT pml_rollback('my-reader@v2.2.0')", &[]).unwrap().get(0);
    assert_eq!(version, 10);
    assert_eq!(db.text("SELECT pml_code('my-reader')", &[]).unwrap(), "return 5");
    assert_eq!(db.text("SELECT pml_code('my-reader@v2.2.0')", &[]).unwrap(), "return 5");
    assert_eq!(
        db.text("SELECT change_summary FROM pml_history('my-reader') LIMIT 1", &[]).unwrap(),
        "Rollback to version 5"
    );
    let again: i32 = db.query_one("SELECT pml_rollback('my-reader')", &[]).unwrap().get(0);
    assert_eq!(again, 10);
}

#[test]
fn versions_are_immutable_for_everyone() {
    let mut db = with_versions();
    for statement in [
        "UPDATE pml.capability_versions SET code_snippet = 'return 0'",
        "DELETE FROM pml.capability_versions",
        "TRUNCATE pml.capability_versions CASCADE",
        "UPDATE pml.capability_records SET version = 1 WHERE display_name = 'my-reader'",
    ] {
        assert_eq!(db.refusal(statement).code().code(), "PM007", "{statement}");
    }
    assert_eq!(db.number("SELECT count(*) FROM pml_history('my-reader')"), 9);
}

#[test]
fn times_of_versions_never_run_backwards() {
    let mut db = with_versions();
    let misplaced = db.number(
        "SELECT count(*) FROM (SELECT updated_at, lag(updated_at) OVER (ORDER BY version) AS before
                               FROM pml_history('my-reader')) AS h WHERE updated_at <= before",
    );
    assert_eq!(misplaced, 0);
}

#[test]
fn other_code_is_neither_verified_nor_signed() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register('return 1', 'a:a'); SELECT pml_register_server('files', code_url => 'npm:a')",
    )
    .unwrap();
    let trust = "UPDATE pml.capability_records SET verified = true, signature = 'sig' WHERE display_name IN ('a:a', 'mcp:files')";
    let trusted =
        "SELECT verified::text || coalesce(signature, '-') FROM pml.capability_records WHERE display_name = ";
    for change in [
        "SELECT pml_update('a:a', 'return 2')",
        "SELECT pml_rollback('a:a@v1')",
        "UPDATE pml.capability_records SET code_snippet = 'return 3' WHERE display_name = 'a:a'",
        "SELECT pml_update('a:a', source => '{\"type\": \"tool\", \"toolId\": \"x:y\"}')",
    ] {
        db.batch_execute(trust).unwrap();
        assert_eq!(db.text(&format!("{trusted} 'a:a'"), &[]).unwrap(), "truesig");
        db.batch_execute(change).unwrap();
        assert_eq!(db.text(&format!("{trusted} 'a:a'"), &[]).unwrap(), "false-", "{change}");
    }
    assert_eq!(db.text(&format!("{trusted} 'mcp:files'"), &[]).unwrap(), "truesig");
    db.batch_execute("SELECT pml_register_server('files', code_url => 'npm:b')").unwrap();
    assert_eq!(db.text(&format!("{trusted} 'mcp:files'"), &[]).unwrap(), "false-");
    // What changes nothing of the code keeps it, and so does what an admin says together with the code.
    db.batch_execute(trust).unwrap();
    db.batch_execute(
        "SELECT pml_rename('a:a', 'a:b', tags => ARRAY['x']); SELECT pml_update('a:b', pml_code('a:b'), version_tag => 'v9.0.0')",
    )
    .unwrap();
    assert_eq!(db.text(&format!("{trusted} 'a:b'"), &[]).unwrap(), "truesig");
    db.batch_execute("UPDATE pml.capability_records SET code_snippet = 'return 4', signature = 'new' WHERE display_name = 'a:b'").unwrap();
    assert_eq!(db.text(&format!("{trusted} 'a:b'"), &[]).unwrap(), "falsenew");
    // Nobody needs to be an admin to change code that was verified; copies and pipelines begin without trust.
    db.batch_execute(
        "SELECT pml_fork('a:b', 'a:c'); SELECT pml_merge(ARRAY['a:b', 'a:c'], 'a:d', 'return cap_a_b(args)')",
    )
    .unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_records WHERE display_name IN ('a:c', 'a:d') AND (verified OR signature IS NOT NULL)"), 0);
}
