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
        (json!("hunter2"), "Invalid arguments: expected a JSON object, found a string"),
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

#[test]
fn a_schema_that_can_not_be_used_is_refused_when_it_is_given() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'known')").unwrap();
    for schema in [
        r#""text""#,
        "[1]",
        r#"{"type": 5}"#,
        r#"{"properties": {"a": {"pattern": "("}}}"#,
        r#"{"$ref": "https://example.com/schema"}"#,
    ] {
        for column in ["parameters_schema", "output_schema"] {
            for statement in [
                format!("SELECT pml_register('return 2', 'new', {column} => '{schema}')"),
                format!("SELECT pml_update('known', 'return 3', {column} => '{schema}')"),
                format!(
                    "UPDATE pml.capability_records SET {column} = '{schema}' WHERE display_name = 'known'"
                ),
            ] {
                let error = db.refusal(&statement);
                assert_eq!(error.code().code(), "22023", "{statement}: {error:?}");
                assert!(error.message().starts_with(&format!("Invalid {column}: ")), "{error:?}");
                assert!(!error.message().contains("feature"), "{error:?}");
            }
        }
    }
    assert_eq!(
        db.number("SELECT count(*) FROM pml.capability_versions v JOIN pml.capability_records r ON r.id = v.capability_fqdn WHERE r.record_type = 'capability'"),
        1
    );
}

#[test]
fn a_schema_that_would_exhaust_the_backend_is_refused() {
    let mut db = Database::new().connect();
    let doubled = "(SELECT jsonb_build_object('unevaluatedProperties', false, '$ref', '#/$defs/d26', '$defs',
        jsonb_object_agg('d' || i, CASE WHEN i = 0 THEN '{}' ELSE jsonb_build_object('allOf', jsonb_build_array(
          jsonb_build_object('$ref', '#/$defs/d' || i - 1), jsonb_build_object('$ref', '#/$defs/d' || i - 1))) END))
        FROM generate_series(0, 26) AS i)";
    let chained = "(SELECT jsonb_build_object('$ref', '#/$defs/d9999', '$defs', jsonb_object_agg('d' || i,
        CASE WHEN i = 0 THEN '{}' ELSE jsonb_build_object('$ref', '#/$defs/d' || i - 1) END)) FROM generate_series(0, 9999) AS i)";
    for schema in [doubled, chained] {
        for call in [
            format!("SELECT pml_check_args({schema}, '{{}}')"),
            format!("SELECT pml_register('return 1', 'a:b', parameters_schema => {schema})"),
        ] {
            let error = db.batch_execute(&call).unwrap_err();
            let error = error.as_db_error().unwrap_or_else(|| panic!("{call}: {error}"));
            assert_eq!(error.code().code(), "22023", "{error}");
            assert!(error.message().contains("subschemas"), "{error}");
        }
    }
}
