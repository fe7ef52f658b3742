//! Schemas of servers' tools.

use pml_tests::{Ask, Database};

#[test]
fn a_tool_is_recorded_and_recorded_anew() {
    let mut db = Database::new().connect();
    let id = db.text("SELECT pml_register_tool('fs', 'read', 'reads', '{\"type\": \"object\", \"required\": [\"path\"]}')", &[]).unwrap();
    assert_eq!(id, "fs:read");
    db.batch_execute("SELECT pml_register_tool('mcp:fs', 'read', 'reads a file', output_schema => '{\"type\": \"string\"}')").unwrap();
    let row =
        db.query_one("SELECT count(*), min(description), min(server_id) FROM pml.tool_schema", &[]).unwrap();
    assert_eq!(
        (row.get::<_, i64>(0), row.get::<_, &str>(1), row.get::<_, &str>(2)),
        (1, "reads a file", "fs")
    );
}

#[test]
fn names_of_tools_are_checked() {
    let mut db = Database::new().connect();
    for call in [
        "pml_register_tool('fs', '')",
        "pml_register_tool('fs', NULL)",
        "pml_register_tool('', 'x')",
        "pml_register_tool('a b', 'x')",
    ] {
        assert_eq!(db.refusal(&format!("SELECT {call}")).code().code(), "PM004", "{call}");
    }
}
