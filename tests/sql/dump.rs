//! Dumps restore row for row, in any order of loading, and everything goes on working.

use std::{path::Path, process::Command};

use fastrand::Rng;
use pml_tests::{Ask, Cluster, Database, Run};
use postgres::Client;
use serde_json::json;

const CONTENT: &str = include_str!("dump_content.sql");

fn fill(db: &mut Client) {
    for statement in CONTENT.split_inclusive(";\n") {
        db.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    assert!(db.number("SELECT count(*) FROM pml.capability_records") > 350);
}

fn filled() -> Database {
    let database = Database::new();
    fill(&mut database.connect());
    database
}

/// All but the locks, which hold nothing.
fn rows(db: &mut Client) -> Vec<String> {
    let tables = db.texts("SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'pml'::regnamespace AND relkind = 'r' AND relname <> 'scope_locks' ORDER BY 1");
    let sequences = db.texts("SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'pml'::regnamespace AND relkind = 'S' ORDER BY 1");
    let tables = tables.iter().map(|name| format!("SELECT '{name} ' || t::text FROM {name} t"));
    let sequences = sequences
        .iter()
        .map(|name| format!("SELECT '{name} ' || last_value || ' ' || is_called FROM {name}"));
    let mut rows: Vec<String> = tables.chain(sequences).flat_map(|query| db.texts(&query)).collect();
    rows.sort();
    rows
}

fn check_same(source: &[String], restored: &mut Client, how: &str) {
    let restored = rows(restored);
    let lost: Vec<_> = source.iter().filter(|row| restored.binary_search(row).is_err()).collect();
    let added: Vec<_> = restored.iter().filter(|row| source.binary_search(row).is_err()).collect();
    assert!(
        lost.is_empty() && added.is_empty() && restored.len() == source.len(),
        "{how}: lost {} rows, added {}\n{:#?}\n{:#?}",
        lost.len(),
        added.len(),
        lost.iter().take(5).collect::<Vec<_>>(),
        added.iter().take(5).collect::<Vec<_>>()
    );
}

/// Registering, renaming and running go on as in the database that was dumped.
fn check_that_it_works(db: &mut Client) {
    db.batch_execute("SET client_min_messages = error").unwrap();
    for spec in [
        "ns:cap_1@v1.3",
        "ns:cap_43",
        "renamed:to_43",
        "renamed:again_43",
        "pml.std:mcp:shell",
        "pml.std:mcp:files",
        "pml.std:mcp:sqlite@v2",
        "pml.std:mcp:clock@v1",
        "mcp:tavily",
    ] {
        db.query("SELECT pml_resolve($1)", &[&spec]).unwrap_or_else(|error| panic!("{spec}: {error:?}"));
    }
    for taken in ["ns:cap_91", "renamed:to_43", "ns:cap_80"] {
        let error = db.refusal(&format!("SELECT pml_register('return 0.25', '{taken}')"));
        assert_eq!(error.code().code(), "PM003", "{taken}");
    }
    assert_eq!(db.refusal("UPDATE pml.capability_versions SET code_snippet = ''").code().code(), "PM007");
    db.batch_execute(
        "SELECT pml_register('return \"new\"', 'ns:new'), pml_update('ns:new', 'return 0.5'), pml_rename('ns:new', 'ns:newer');
         SELECT pml_update('ns:cap_6', 'return 6.5'), pml_register('return 7.5'), pml_rename('ns:cap_2', 'ns:two');
         SELECT pml_fork('ns:two', 'ns:two_again'), pml_delete('ns:two'), pml_register('return mcp.ns.newer()', 'ns:caller');
         SELECT pml_register_tools('late', '[{\"name\": \"tool\"}]'), pml_register('return 8.5', 'free:again');
         SET pml.org = 'pml'; SET pml.project = 'std'; SELECT pml_register_server('filesystem', 'local'); RESET pml.org; RESET pml.project",
    )
    .unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pml_history('ns:newer')"), 2);
    assert_eq!(db.text("SELECT display_name FROM pml_lookup('ns:new')", &[]).unwrap(), "ns:newer");
    assert_eq!(db.refusal("SELECT pml_delete('ns:newer')").code().code(), "2BP01");
    let answer = db.run(&json!({"capability": "ns:caller"}), &json!("done"));
    assert_eq!(answer["result"], "done");
    let answer = db.run(&json!({"code": "return args.x", "name": "ns:ran", "args": {"x": 1}}), &json!(1));
    assert_eq!(answer["capabilityName"], "ns:ran");
    // Rows past their time go, and counting goes on where it was.
    let slot = "SELECT count(*) FROM pml.tool_usage WHERE slot = 0";
    assert_eq!((db.number(slot) > 0, db.number("SELECT pml_expire_some()"), db.number(slot)), (true, 1, 0));
    assert_eq!(
        db.number("SELECT slot::bigint FROM pml.execution_trace ORDER BY executed_at DESC LIMIT 1"),
        4
    );
    let running = db.text("SELECT workflow_id::text FROM pml.workflow_state WHERE finished_at IS NULL", &[]);
    let answer = db.finish(&json!({"workflow_id": running}), &json!({"success": true, "result": 6}));
    assert_eq!(answer["status"], "success");
}

/// Runs a command that must succeed without a word.
fn run(command: &mut Command) {
    let output = command.output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{command:?}: {said}");
}

fn dump(cluster: &Cluster, database: &str, options: &[&str], file: &Path) {
    dump_with(cluster.tool_as("postgres", "pg_dump").args(["-d", database]).args(options), file);
}

fn dump_with(command: &mut Command, file: &Path) {
    // What an earlier dump left is a file or a folder.
    let _ = std::fs::remove_file(file);
    let _ = std::fs::remove_dir_all(file);
    run(command.arg("-f").arg(file));
}

fn psql(cluster: &Cluster, database: &str, file: &Path) {
    let options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", "-d", database, "-f"];
    run(cluster.tool_as("postgres", "psql").args(options).arg(file));
}

fn pg_restore(cluster: &Cluster, database: &str, options: &[&str], file: &Path) {
    run(cluster.tool_as("postgres", "pg_restore").args(["-d", database]).args(options).arg(file));
}

/// What is in the database before a dump is loaded.
#[derive(Clone, Copy)]
enum Before {
    Nothing,
    /// The extension, and what a proxy that has connected made: the key, and the first slots.
    Extension,
    /// Records of its own, which --clean removes.
    Records,
}

/// Options of pg_dump, those of pg_restore (none: it is a script for psql), and what was there before.
type Form = (&'static [&'static str], Option<&'static [&'static str]>, Before);

#[test]
fn every_form_of_dump_restores_row_for_row() {
    let database = filled();
    let source = rows(&mut database.connect());
    let target = Cluster::new();
    let file = target.folder().join("dump");
    let forms: [Form; 12] = [
        (&["-Fc"], Some(&[]), Before::Nothing),
        (&["-Fc"], Some(&["--single-transaction"]), Before::Nothing),
        (&["-Fc"], Some(&["--clean", "--if-exists"]), Before::Records),
        (&["-Fd", "-j4"], Some(&["-j4"]), Before::Nothing),
        (&["-Fd", "-j4"], Some(&["-j8", "--clean", "--if-exists"]), Before::Records),
        (&["-Fp"], None, Before::Nothing),
        (&["-Fp", "--clean", "--if-exists"], None, Before::Records),
        (&["-Fp", "--inserts"], None, Before::Nothing),
        (&["-Fc", "--rows-per-insert=7"], Some(&["-j4"]), Before::Nothing),
        (&["-Fp", "--data-only"], None, Before::Extension),
        (&["-Fc", "--data-only"], Some(&["-j4"]), Before::Extension),
        (&["-Fc", "--data-only", "--inserts"], Some(&["--single-transaction"]), Before::Extension),
    ];
    for (number, (dumped, restored, before)) in forms.into_iter().enumerate() {
        let how = format!("pg_dump {}, pg_restore {}", dumped.join(" "), restored.unwrap_or(&[]).join(" "));
        dump(Cluster::shared(), &database.name, dumped, &file);
        let name = format!("restored_{number}");
        target.connect("postgres").batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        match before {
            Before::Nothing => {}
            Before::Extension => {
                target
                    .connect(&name)
                    .batch_execute("CREATE EXTENSION pml; SELECT pml_proxy_key(), pml_expire_some()")
                    .unwrap();
            }
            Before::Records => {
                target
                    .connect(&name)
                    .batch_execute("CREATE EXTENSION pml; SELECT pml_register('return 1', 'ns:cap_1')")
                    .unwrap();
            }
        }
        match restored {
            Some(options) => pg_restore(&target, &name, options, &file),
            None => psql(&target, &name, &file),
        }
        let mut db = target.connect(&name);
        check_same(&source, &mut db, &how);
        check_that_it_works(&mut db);
    }
}

/// As `pg_restore -j` may load them, and as it never has so far.
#[test]
fn tables_can_be_loaded_in_any_order() {
    let database = filled();
    let source = rows(&mut database.connect());
    let target = Cluster::new();
    let (file, list) = (target.folder().join("dump"), target.folder().join("list"));
    dump(Cluster::shared(), &database.name, &["-Fc"], &file);
    let contents = target.tool("pg_restore", &["-l", file.to_str().unwrap()]);
    let contents = String::from_utf8(contents).unwrap();
    let is_data = |line: &&str| line.contains(" TABLE DATA ") || line.contains(" SEQUENCE SET ");
    let (mut data, first): (Vec<&str>, Vec<&str>) = contents.lines().partition(is_data);
    assert!(data.len() > 15);
    let mut random = Rng::with_seed(13);
    for number in 0..8 {
        match number {
            0 => data.reverse(),
            _ => random.shuffle(&mut data),
        }
        std::fs::write(&list, [&first[..], &data[..]].concat().join("\n")).unwrap();
        let name = format!("in_order_{number}");
        target.connect("postgres").batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        run(target.tool_as("postgres", "pg_restore").args(["-d", &name, "--use-list"]).args([&list, &file]));
        let mut db = target.connect(&name);
        check_same(&source, &mut db, &data.join("\n"));
        check_that_it_works(&mut db);
    }
}

#[test]
fn what_was_restored_can_be_dumped_again() {
    let database = filled();
    let source = rows(&mut database.connect());
    let target = Cluster::new();
    let file = target.folder().join("dump");
    dump(Cluster::shared(), &database.name, &["-Fc"], &file);
    target.connect("postgres").batch_execute("CREATE DATABASE first").unwrap();
    target.connect("postgres").batch_execute("CREATE DATABASE second").unwrap();
    pg_restore(&target, "first", &["-j4"], &file);
    dump(&target, "first", &["-Fc"], &file);
    pg_restore(&target, "second", &["-j4"], &file);
    check_same(&source, &mut target.connect("second"), "twice");
}

#[test]
fn a_whole_cluster_is_restored() {
    let cluster = Cluster::new();
    let mut db = cluster.database_with_extension("filled");
    fill(&mut db);
    db.batch_execute(
        "CREATE ROLE operator LOGIN IN ROLE pml_admin; CREATE ROLE gate LOGIN IN ROLE pml_proxy",
    )
    .unwrap();
    let source = rows(&mut db);
    let target = Cluster::new();
    let file = target.folder().join("dump");
    run(cluster.tool_as("postgres", "pg_dumpall").arg("-f").arg(&file));
    let loaded =
        target.tool_as("postgres", "psql").args(["-Xqd", "postgres", "-f"]).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&loaded.stderr);
    let expected = said.lines().all(|line| line.ends_with("role \"postgres\" already exists"));
    assert!(loaded.status.success() && expected, "{said}");
    let mut restored = target.connect("filled");
    check_same(&source, &mut restored, "pg_dumpall");
    check_that_it_works(&mut restored);
    let mut operator = target.config("operator", "filled").connect(postgres::NoTls).unwrap();
    assert!(operator.number("SELECT count(*) FROM pml.tokens") == 2);
}

#[test]
fn the_owner_and_the_schema_may_be_others() {
    let cluster = Cluster::new();
    cluster.connect("postgres").batch_execute("CREATE DATABASE filled").unwrap();
    let mut db = cluster.connect("filled");
    db.batch_execute(
        "CREATE SCHEMA \"my Tools\"; CREATE EXTENSION pml SCHEMA \"my Tools\"; GRANT USAGE ON SCHEMA \"my Tools\" TO PUBLIC;
         ALTER DATABASE filled SET search_path = \"my Tools\"; SET search_path = \"my Tools\"",
    )
    .unwrap();
    fill(&mut db);
    let source = rows(&mut db);
    let target = Cluster::new();
    let file = target.folder().join("dump");
    target.connect("postgres").batch_execute("CREATE ROLE alice LOGIN").unwrap();
    for (number, options) in [&["-j4"][..], &["-j4", "--no-owner", "--no-privileges"]].into_iter().enumerate()
    {
        let name = format!("of_alice_{number}");
        target.connect("postgres").batch_execute(&format!("CREATE DATABASE {name} OWNER alice")).unwrap();
        dump(&cluster, "filled", &["-Fd", "-j4"], &file);
        pg_restore(&target, &name, options, &file);
        let mut restored = target.connect(&name);
        check_same(&source, &mut restored, &options.join(" "));
        restored.batch_execute("SET search_path = \"my Tools\"").unwrap();
        check_that_it_works(&mut restored);
    }
}

#[test]
fn a_newer_major_version_takes_it() {
    let database = filled();
    let source = rows(&mut database.connect());
    let target = Cluster::of_newest_major();
    let file = target.folder().join("dump");
    let mut postgres = target.connect("postgres");
    let forms: [(&[&str], bool); 4] =
        [(&["-Fd", "-j4"], true), (&["-Fd", "-j4"], false), (&["-Fp", "--inserts"], true), (&["-Fp"], false)];
    for (number, (options, with_newer)) in forms.into_iter().enumerate() {
        let name = format!("restored_{number}");
        postgres.batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        // Postgres' advice is to dump with the newer version's program.
        let mut command = if with_newer { &target } else { Cluster::shared() }.tool_as("postgres", "pg_dump");
        let from = Cluster::shared().folder().to_str().unwrap();
        dump_with(command.args(["-h", from, "-d", &database.name]).args(options), &file);
        if options[0] == "-Fd" {
            pg_restore(&target, &name, &["-j4"], &file);
        } else {
            psql(&target, &name, &file);
        }
        let mut restored = target.connect(&name);
        check_same(&source, &mut restored, &format!("{options:?}, newer pg_dump: {with_newer}"));
        check_that_it_works(&mut restored);
    }
}
