//! Cached plans in long transactions: no sequential scan, whatever the statistics said when the plan was made.

use pml_tests::{Ask, Database};

#[test]
fn bulk_changes_read_no_table_whole() {
    let database = Database::new();
    let mut db = database.connect();
    let register = "SELECT count(pml_register('return mcp.fs.read({ n: ' || i || ' })', 'bulk:' || i))";
    // Small and known to be so, as after an analyze: the moment to read a table whole, and the plans are kept.
    db.batch_execute(&format!("{register} FROM generate_series(1, 20) AS i; ANALYZE")).unwrap();
    let mut db = database.connect();
    db.batch_execute("SET client_min_messages = error; BEGIN").unwrap();
    for statement in [
        format!("{register} FROM generate_series(101, 200) AS i"),
        "SELECT count(pml_update('bulk:' || i, 'return mcp[\"bulk:' || i + 1 || '\"](args)')) FROM generate_series(101, 199) AS i".into(),
        "SELECT count(pml_rename('bulk:' || i, 'moved:' || i)) FROM generate_series(101, 200) AS i".into(),
        "SELECT count(pml_fork('moved:' || i, 'copy:' || i)) FROM generate_series(101, 200) AS i".into(),
        "SELECT count(pml_rollback('moved:' || i || '@v1')) FROM generate_series(101, 150) AS i".into(),
        "SELECT count(pml_delete('copy:' || i)) FROM generate_series(101, 200) AS i".into(),
        "SELECT count(pml_begin(jsonb_build_object('capability', 'moved:' || i))) FROM generate_series(101, 150) AS i".into(),
    ] {
        db.batch_execute(&statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        let read_whole = db.texts(
            "SELECT relname || ' ' || seq_tup_read FROM pg_stat_xact_user_tables WHERE schemaname = 'pml' AND seq_tup_read > 0",
        );
        assert_eq!(read_whole, Vec::<String>::new(), "by {statement}");
    }
}
