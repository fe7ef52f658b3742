//! pml_check_args: defaults filled in, and errors that name the argument but never its value.

use pml_tests::{Ask, Database, failure};
use serde_json::{Value, json};

const SCHEMA: &str = r#"{"type": "object", "required": ["path"], "properties": {
    "path": {"type": "string"}, "encoding": {"type": "string", "default": "utf-8"},
    "options": {"type": "object", "properties": {"depth": {"type": "integer", "default": 1}}}}}"#;

fn check(db: &mut postgres::Client, args: &Value) -> Result<Value, postgres::Error> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    db.query_one("SELECT pml_check_args($1, $2)", &[&schema, args]).map(|row| row.get(0))
}

#[test]
fn defaults_are_filled_in() {
    let mut db = Database::new().connect();
    assert_eq!(
        check(&mut db, &json!({"path": "x.json", "options": {}})).unwrap(),
        json!({"path": "x.json", "encoding": "utf-8", "options": {"depth": 1}})
    );
    assert_eq!(check(&mut db, &json!({"path": "x", "encoding": "latin1"})).unwrap()["encoding"], "latin1");
}

#[test]
fn a_bad_argument_is_named_and_its_value_is_not() {
    let mut db = Database::new().connect();
    for (args, message) in [
        (json!({}), "Invalid arguments: \"path\" is missing"),
        (json!({"path": ["hunter2"]}), "Invalid arguments: \"path\" is not of type \"string\""),
        (
            json!({"path": "x", "options": {"depth": "hunter2"}}),
            "Invalid arguments: \"options.depth\" is not of type \"integer\"",
        ),
        (json!("hunter2"), "Invalid arguments: they must be an object"),
    ] {
        let error = failure(check(&mut db, &args));
        assert_eq!((error.code().code(), error.message()), ("22023", message));
        assert!(!format!("{error:?}").contains("hunter2"));
    }
    assert_eq!(
        failure(check(&mut db, &json!({}))).hint(),
        Some("Required: path. Optional: encoding, options.")
    );
}

#[test]
fn nothing_given_is_an_empty_object_and_any_schema() {
    let mut db = Database::new().connect();
    assert_eq!(db.text("SELECT pml_check_args(NULL, NULL)::text", &[]).unwrap(), "{}");
    assert_eq!(
        db.text("SELECT pml_check_args('{\"default\": {\"a\": 1}}', NULL)::text", &[]).unwrap(),
        "{\"a\": 1}"
    );
}

#[test]
fn what_json_in_rust_can_not_hold_is_an_error_and_no_crash() {
    let mut db = Database::new().connect();
    for (schema, args) in [
        ("'true'", "jsonb_build_object('a', 1e400::numeric)"),
        ("'true'", "jsonb_build_object('a', (repeat('[', 1000) || repeat(']', 1000))::jsonb)"),
        ("jsonb_build_object('minimum', 1e400::numeric)", "'{}'"),
        ("'{\"type\": \"nonsense\"}'", "'{}'"),
        ("'[]'", "'{}'"),
        ("'{\"$ref\": \"https://example.com/schema\"}'", "'{}'"),
        ("'{\"properties\": {\"a\": {\"pattern\": \"(\"}}}'", "'{\"a\": \"x\"}'"),
    ] {
        let error = db.refusal(&format!("SELECT pml_check_args({schema}, {args})"));
        assert_eq!(error.code().code(), "22023", "{schema} {args}: {error:?}");
        assert!(error.hint().is_some());
    }
}
