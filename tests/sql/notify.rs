//! LISTEN pml_tools_changed hears what alters the list of tools, and nothing else.

use std::time::Duration;

use pml_tests::{Ask, Database};

/// The payloads that a statement causes. A marker sent after it shows that all have come.
fn heard(listener: &mut postgres::Client, writer: &mut postgres::Client, statement: &str) -> Vec<String> {
    writer.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    writer.batch_execute("NOTIFY pml_tools_changed, 'marker'").unwrap();
    let mut payloads = Vec::new();
    while !payloads.iter().any(|payload| payload == "marker") {
        payloads.extend(listener.notifications_for(Duration::from_millis(20)));
    }
    payloads.retain(|payload| payload != "marker");
    payloads
}

#[test]
fn changes_of_the_tool_list_are_heard_with_their_scope() {
    let database = Database::new();
    let (mut listener, mut writer) = (database.connect(), database.connect());
    listener.batch_execute("LISTEN pml_tools_changed").unwrap();
    let scope = vec!["local.default".to_owned()];
    let silence: Vec<String> = Vec::new();
    for (statement, expected) in [
        ("SELECT pml_register('return 1')", &silence),
        ("SELECT pml_register('return 1')", &silence),
        ("SELECT pml_register('return 1', 'a')", &scope),
        ("SELECT pml_register('return 2', 'b')", &scope),
        ("SELECT pml_rename('a', 'c')", &scope),
        ("UPDATE pml.capability_records SET display_name = 'd' WHERE display_name = 'c'", &scope),
        ("SELECT pml_update('d', 'return 3')", &scope),
        ("UPDATE pml.capability_records SET usage_count = 9 WHERE display_name = 'd'", &silence),
        ("SELECT pml_rename('d', description => 'new')", &scope),
        ("SELECT pml_rename('d', visibility => 'public')", &scope),
        ("SELECT pml_rename('d', tags => ARRAY['x'])", &silence),
        ("SELECT pml_update('d', 'return 3', parameters_schema => '{\"type\": \"object\"}')", &scope),
        ("SELECT pml_fork('d', 'e')", &scope),
        ("SELECT pml_delete('e')", &scope),
        ("SELECT pml_register_tool('fs', 'read')", &scope),
        ("SELECT pml_register_tool('fs', 'read')", &silence),
        ("UPDATE pml.tool_schema SET cached_at = now()", &silence),
        ("UPDATE pml.tool_schema SET server_id = 'files', tool_id = 'files:read'", &scope),
        ("DELETE FROM pml.tool_schema", &scope),
        ("SELECT pml_update('d', 'return { a: 1 }')", &scope),
        ("SELECT pml_update('d', 'return { a: 1 }', output_schema => '{\"type\": \"object\"}')", &scope),
        ("BEGIN; SELECT pml_register('return 5', 'gone'); ROLLBACK", &silence),
        ("SET pml.project = 'other'; SELECT pml_register('return 6', 'f')", &vec!["local.other".to_owned()]),
    ] {
        assert_eq!(&heard(&mut listener, &mut writer, statement), expected, "{statement}");
    }
}
