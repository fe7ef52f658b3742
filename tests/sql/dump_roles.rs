//! Who can dump what: admins without being superuser, backup roles, the extension alone.

use std::process::Output;

use pml_tests::{Ask, Cluster, Database};

const RECORDS: &str = "COPY pml.capability_records ";

fn database() -> Database {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute(
        "CREATE TABLE public.payroll (secret text); INSERT INTO public.payroll VALUES ('the salary');
         SET pml.org = 'acme'; SET pml.actor = 'alice'; SELECT pml_register('return \"of alice\"', 'alice:one'), pml_rename('alice:one', 'alice:two')",
    )
    .unwrap();
    database
}

fn dump(database: &Database, role: &str, options: &[&str]) -> Output {
    let mut command = Cluster::shared().tool_as(role, "pg_dump");
    command.args(["-d", &database.name]).args(options).output().unwrap()
}

fn dumped(database: &Database, role: &str, options: &[&str]) -> String {
    let output = dump(database, role, options);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{role}, {options:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Loads a script into a new database and returns who is there.
fn names_after(script: &str, name: &str) -> Vec<String> {
    let cluster = Cluster::new();
    let file = cluster.folder().join("script.sql");
    std::fs::write(&file, script).unwrap();
    cluster.connect("postgres").batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
    cluster.tool(
        "psql",
        &["-Xq", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", "-d", name, "-f", file.to_str().unwrap()],
    );
    cluster.connect(name).texts("SELECT display_name FROM pml.capability_records WHERE org = 'acme'")
}

#[test]
fn an_admin_dumps_the_extension_without_the_rest() {
    let database = database();
    let role = database.create_role("operator", &["pml_admin"]);
    let script = dumped(&database, &role, &["-e", "pml", "-n", "pml", "--enable-row-security"]);
    assert!(script.contains("CREATE EXTENSION") && !script.contains("payroll"));
    assert_eq!(names_after(&script, "restored"), ["alice:two"]);
    // Without the option, Postgres refuses rather than leaving rows out.
    let output = dump(&database, &role, &["-e", "pml", "-n", "pml"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("row-level security"));
}

#[test]
fn a_backup_role_dumps_the_whole_database() {
    let database = database();
    let role = database.create_role("backup", &["pg_read_all_data"]);
    database.connect().batch_execute(&format!("ALTER ROLE {role} BYPASSRLS")).unwrap();
    let script = dumped(&database, &role, &[]);
    assert!(script.contains("the salary"));
    assert_eq!(names_after(&script, "restored"), ["alice:two"]);
}

/// As docs/operations.md says: what belongs to an extension comes with the extension, not with a schema's name.
#[test]
fn a_schema_alone_has_no_data() {
    let database = database();
    assert!(!dumped(&database, "postgres", &["-n", "pml"]).contains("COPY "));
    for options in [&["-n", "pml", "-e", "pml"][..], &["-e", "pml", "-t", "pml.*"], &["-a", "-e", "pml"]] {
        assert!(dumped(&database, "postgres", options).contains(RECORDS), "{options:?}");
    }
}

#[test]
fn others_dump_nothing() {
    let database = database();
    let proxy = database.create_role("gate", &["pml_proxy"]);
    let reader = database.create_role("reader", &["pg_read_all_data"]);
    // Since 18, a sequence that can't be read is told in other words.
    for (role, refusals) in
        [(&proxy, ["permission denied", "SELECT privilege"]), (&reader, ["row-level security"; 2])]
    {
        let output = dump(&database, role, &["-e", "pml", "-n", "pml"]);
        let said = String::from_utf8_lossy(&output.stderr);
        let is_refused = refusals.iter().any(|refusal| said.contains(refusal));
        assert!(!output.status.success() && is_refused, "{role}: {said}");
    }
    // Even with the option: none of the policies is for them.
    let script = String::from_utf8(
        dump(&database, &reader, &["-e", "pml", "-n", "pml", "--enable-row-security"]).stdout,
    );
    assert!(!script.unwrap().contains("alice"));
}

/// Else it could be restored only where a role has the name of whoever installed the extension.
#[test]
fn the_dump_of_an_unchanged_extension_names_no_role() {
    let database = Database::new();
    let script = dumped(&database, "postgres", &[]);
    let privileges: Vec<_> =
        script.lines().filter(|line| line.starts_with("GRANT") || line.starts_with("REVOKE")).collect();
    assert_eq!(privileges, [""; 0]);
    assert!(!script.contains("pml.std"), "the base servers are dumped");
}
