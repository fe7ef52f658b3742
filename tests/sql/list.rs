//! pml_list: filters, patterns, order, pages.

use pml_tests::{Ask, Database};

fn database() -> postgres::Client {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register('return 1', 'fs:read_json', tags => ARRAY['json', 'io'], visibility => 'project');
         SELECT pml_register('return 2', 'fs:write', tags => ARRAY['io'], visibility => 'public');
         SELECT pml_register('return 3', 'api:fetch');
         SELECT pml_register('return 4', 'read_a'); SELECT pml_register('return 5', 'readXb');
         SELECT pml_register('return 6'); SELECT pml_register('return 7');
         SELECT pml_register('return 2'); SELECT pml_register('return 2'); SELECT pml_register('return 3')",
    )
    .unwrap();
    db
}

fn names(db: &mut postgres::Client, arguments: &str) -> Vec<String> {
    db.texts(&format!("SELECT name FROM pml_list({arguments}) WHERE name NOT LIKE 'unnamed%'"))
}

#[test]
fn without_filters_everything_by_usage() {
    let mut db = database();
    assert_eq!(db.number("SELECT count(*) FROM pml_list()"), 7);
    assert_eq!(names(&mut db, ""), ["fs:write", "api:fetch", "fs:read_json", "readXb", "read_a"]);
    let row = db
        .query_one(
            "SELECT usage_count, success_rate::float8, parameters, fqdn FROM pml_list('fs:write')",
            &[],
        )
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), 2);
    assert_eq!(row.get::<_, f64>(1), 1.0);
}

#[test]
fn patterns_are_globs_in_which_percent_and_underscore_are_themselves() {
    let mut db = database();
    assert_eq!(names(&mut db, "'fs:*', sort_by => 'name'"), ["fs:read_json", "fs:write"]);
    assert_eq!(names(&mut db, "'read_?'"), ["read_a"]);
    assert_eq!(names(&mut db, "'read?b'"), ["readXb"]);
    assert_eq!(names(&mut db, "'%'"), [""; 0]);
    assert_eq!(names(&mut db, "'fs:write'"), ["fs:write"]);
    assert_eq!(names(&mut db, "''"), [""; 0]);
}

#[test]
fn filters_narrow() {
    let mut db = database();
    let sorted = "sort_by => 'name'";
    assert_eq!(names(&mut db, &format!("namespace => 'fs', {sorted}")), ["fs:read_json", "fs:write"]);
    assert_eq!(names(&mut db, "tags => ARRAY['io', 'json']"), ["fs:read_json"]);
    assert_eq!(names(&mut db, "visibility => 'project'"), ["fs:read_json"]);
    assert_eq!(names(&mut db, "created_by => 'post*', pattern => 'api*'"), ["api:fetch"]);
    assert_eq!(names(&mut db, "created_by => 'someone'"), [""; 0]);
    assert_eq!(db.number("SELECT count(*) FROM pml_list(named_only => true)"), 5);
    assert_eq!(db.number("SELECT count(*) FROM pml_list(unnamed_only => true)"), 2);
}

#[test]
fn the_namespace_is_the_one_people_see() {
    let mut db = database();
    db.batch_execute("SELECT pml_rename('fs:write', 'data:parse')").unwrap();
    assert_eq!(names(&mut db, "namespace => 'data'"), ["data:parse"]);
    assert_eq!(names(&mut db, "namespace => 'fs'"), ["fs:read_json"]);
}

#[test]
fn pages_and_orders() {
    let mut db = database();
    let all = db.texts("SELECT name FROM pml_list(sort_by => 'name')");
    let pages: Vec<String> = (0..4)
        .flat_map(|page| {
            db.texts(&format!(
                "SELECT name FROM pml_list(sort_by => 'name', \"limit\" => 2, \"offset\" => {})",
                page * 2
            ))
        })
        .collect();
    assert_eq!(all, pages);
    let by_age = db.texts("SELECT name FROM pml_list(sort_by => 'created', named_only => true)");
    assert_eq!(by_age, ["readXb", "read_a", "api:fetch", "fs:write", "fs:read_json"]);
}

#[test]
fn what_is_shared_is_listed_across_scopes() {
    let mut db = database();
    db.batch_execute("SET pml.org = 'acme'").unwrap();
    assert_eq!(names(&mut db, ""), [""; 0]);
    assert_eq!(names(&mut db, "visibility => 'public'"), ["local.default:fs:write"]);
    // The name that is listed can be called.
    db.query("SELECT pml_resolve(name) FROM pml_list(visibility => 'public')", &[]).unwrap();
}

#[test]
fn wrong_arguments_say_so() {
    let mut db = database();
    for arguments in [
        "sort_by => 'size'",
        "sort_by => NULL",
        "visibility => 'x'",
        "named_only => true, unnamed_only => true",
        "\"limit\" => -1",
        "\"offset\" => -1",
    ] {
        assert_eq!(
            db.refusal(&format!("SELECT * FROM pml_list({arguments})")).code().code(),
            "22023",
            "{arguments}"
        );
    }
}

#[test]
fn namespaces_and_tags_are_patterns_and_servers_are_listed_when_asked_for() {
    let mut db = database();
    db.batch_execute(
        "SELECT pml_update('fs:write', 'return 20', version_tag => 'v1.2.0');
         SELECT pml_update('api:fetch', 'return 30', version_tag => 'v2.0.0');
         SELECT pml_register_server('files', 'local', version_tag => 'v1.9.0')",
    )
    .unwrap();
    assert_eq!(names(&mut db, "namespace => '?s', sort_by => 'name'"), ["fs:read_json", "fs:write"]);
    assert_eq!(names(&mut db, "namespace => '*i'"), ["api:fetch"]);
    assert_eq!(names(&mut db, "namespace => 'f_'"), [""; 0]);
    assert_eq!(names(&mut db, "version_tag => 'v1.*'"), ["fs:write"]);
    assert_eq!(names(&mut db, "version_tag => '*', sort_by => 'name'"), ["api:fetch", "fs:write"]);
    assert_eq!(names(&mut db, "record_type => 'mcp-server'"), ["mcp:files"]);
    assert_eq!(
        names(&mut db, "record_type => NULL, version_tag => 'v1.*', sort_by => 'name'"),
        ["fs:write", "mcp:files"]
    );
    // The base servers are public.
    let base = names(&mut db, "record_type => 'mcp-server', visibility => 'public', sort_by => 'name'");
    assert_eq!(base, ["pml.std:mcp:filesystem", "pml.std:mcp:shell", "pml.std:mcp:sqlite"]);
    assert_eq!(db.refusal("SELECT * FROM pml_list(record_type => 'server')").code().code(), "22023");
}
