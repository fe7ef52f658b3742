//! CREATE EXTENSION where it can't succeed: the error says what is wrong with the database and what to do.

use std::fs;

use pml_tests::{Ask, Cluster, Database, extension_folder};

const INSTALL: &str = "CREATE EXTENSION pml";

#[test]
fn a_database_that_is_not_utf8_is_refused() {
    let mut postgres = Cluster::shared().connect("postgres");
    for encoding in ["SQL_ASCII", "LATIN1", "WIN1252", "EUC_JP", "EUC_KR"] {
        let name = format!("in_{}", encoding.to_lowercase());
        postgres
            .batch_execute(&format!(
                "CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
            ))
            .unwrap();
        let error = Cluster::shared().connect(&name).refusal(INSTALL);
        assert_eq!(error.code().code(), "0A000", "{error:?}");
        assert_eq!(error.message(), format!("PML needs a database in UTF8; \"{name}\" is in {encoding}"));
        assert!(error.hint().is_some_and(|hint| hint.contains("ENCODING 'UTF8'")), "{error:?}");
        assert_eq!(error.detail(), None);
    }
    // As the hint says.
    postgres
        .batch_execute("CREATE DATABASE as_hinted ENCODING 'UTF8' LOCALE 'C.UTF-8' TEMPLATE template0")
        .unwrap();
    Cluster::shared().connect("as_hinted").batch_execute(INSTALL).unwrap();
}

/// Postgres reads the script in the encoding of the database, before any of it runs.
#[test]
fn the_install_script_is_ascii() {
    let script =
        fs::read(extension_folder().join(format!("pml--{}.sql", env!("CARGO_PKG_VERSION")))).unwrap();
    let odd = script.split(|byte| *byte == b'\n').find(|line| !line.is_ascii());
    assert_eq!(odd.map(String::from_utf8_lossy), None);
}

#[test]
fn schemas_that_are_taken_are_named() {
    let mut db = Database::new().connect();
    db.batch_execute("DROP EXTENSION pml").unwrap();
    for schema in ["pml", "pml_internal"] {
        db.batch_execute(&format!("CREATE SCHEMA {schema}")).unwrap();
        let error = db.refusal(INSTALL);
        assert_eq!(error.code().code(), "42P06");
        assert_eq!(error.message(), format!("Schema \"{schema}\" exists already"));
        let rename = format!("ALTER SCHEMA {schema} RENAME TO");
        assert!(error.hint().is_some_and(|hint| hint.contains(&rename)), "{error:?}");

        let error = db.refusal(&format!("{INSTALL} SCHEMA {schema}"));
        assert_eq!(error.code().code(), "42P06");
        assert_eq!(error.message(), format!("The functions of PML can't be in schema \"{schema}\""));
        let drop = format!("DROP SCHEMA {schema}; then CREATE EXTENSION pml SCHEMA public");
        assert!(error.hint().is_some_and(|hint| hint.contains(&drop)), "{error:?}");
        db.batch_execute(&format!("DROP SCHEMA {schema}")).unwrap();
    }
    db.batch_execute("CREATE EXTENSION pml SCHEMA public; SELECT pml_register('return 1', 'x')").unwrap();
}
