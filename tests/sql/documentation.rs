//! The SQL in README and docs/ is run, in order, each document in a database of its own; where output is shown, it is
//! compared.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use pml_tests::{Cluster, Database};

/// The sessions of a document: the text of its ```sql blocks, each with the ```text block right after it, if any.
fn sessions(markdown: &str) -> Vec<(String, Option<String>)> {
    let mut sessions: Vec<(String, Option<String>)> = Vec::new();
    let mut lines = markdown.lines();
    let mut expects_output = false;
    while let Some(line) = lines.next() {
        let kind = line.trim().strip_prefix("```").unwrap_or("none");
        if kind == "sql" || kind == "text" {
            let block: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
            if kind == "sql" {
                sessions.push((block.join("\n"), None));
            } else if expects_output && let Some(last) = sessions.last_mut() {
                last.1 = Some(block.join("\n"));
            }
            expects_output = kind == "sql";
        } else if !line.trim().is_empty() {
            expects_output = false;
            // Blocks of other languages are skipped whole.
            if kind != "none" && !kind.is_empty() {
                let _ = lines.by_ref().take_while(|line| line.trim() != "```").count();
            }
        }
    }
    sessions
}

/// psql's output as it stands in a document: without row counts, command tags and blank lines.
fn run(database: &Database, sql: &str) -> String {
    let script = format!("SET client_min_messages = error;\n{sql}\n");
    let file = Cluster::shared().folder().join(format!("{}.sql", database.name));
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-P", "footer=off", "-d", &database.name, "-f"];
    let output = Cluster::shared().tool("psql", &[&options[..], &[file.to_str().unwrap()]].concat());
    let output = String::from_utf8_lossy(&output).into_owned();
    let lines: Vec<&str> = output.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

#[test]
fn the_sql_in_the_documents_runs_as_shown() {
    let mut compared = 0;
    for document in documents() {
        let database = Database::new();
        for (sql, shown) in sessions(&fs::read_to_string(&document).unwrap()) {
            let output = run(&database, &sql);
            if let Some(shown) = shown {
                let shown: Vec<&str> =
                    shown.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
                assert_eq!(output, shown.join("\n"), "{}:\n{sql}", document.display());
                compared += 1;
            }
        }
    }
    assert!(compared > 0, "no document shows any output");
}

/// README, docs/ and the other documents at the root.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = [root.clone(), root.join("docs")];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

#[test]
fn no_line_of_the_documents_is_over_130_columns() {
    for document in documents() {
        // Cells of tables can't be wrapped.
        let text = fs::read_to_string(&document).unwrap();
        let long =
            text.lines().enumerate().filter(|(_, line)| line.chars().count() > 130 && !line.starts_with('|'));
        let numbers: Vec<usize> = long.map(|(number, _)| number + 1).collect();
        assert_eq!(numbers, [0; 0], "{}", document.display());
    }
}

#[test]
fn the_files_that_the_documents_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tops = [
        "sql",
        "proxy",
        "worker",
        "pml_core",
        "pml_compile",
        "pml_ext",
        "tests",
        "bench",
        "scripts",
        "docs",
        "fuzz",
        "packaging",
    ];
    let mut named = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let code = text.split('`').skip(1).step_by(2);
        let paths = code.filter(|word| {
            let is_path = word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            is_path && word.split_once('/').is_some_and(|(top, _)| tops.contains(&top))
        });
        for path in paths {
            named += 1;
            assert!(root.join(path).exists(), "{} names {path}", document.display());
        }
    }
    assert!(named > 20, "the documents name files");
}
