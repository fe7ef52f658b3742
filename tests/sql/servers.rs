//! MCP servers as records.

use pml_tests::{Ask, Database};

#[test]
fn the_base_servers_are_there_for_every_scope() {
    let mut db = Database::new().connect();
    db.batch_execute("SET pml.org = 'acme'; SET pml.project = 'webapp'").unwrap();
    for name in ["mcp:filesystem", "mcp:shell", "mcp:sqlite"] {
        let row = db
            .query_one(
                "SELECT fqdn, type, visibility, routing, code_url, version_tag FROM pml_lookup($1)",
                &[&name],
            )
            .unwrap();
        assert!(row.get::<_, String>(0).starts_with(&format!("pml.std.mcp.{}.", &name[4..])));
        assert_eq!(row.get::<_, String>(1), "mcp-server");
        assert_eq!(row.get::<_, String>(2), "public");
        assert_eq!(row.get::<_, String>(3), "local");
        assert!(!row.get::<_, String>(4).is_empty());
    }
    assert_eq!(db.refusal("SELECT pml_resolve('mcp:unknown')").code().code(), "PM001");
    assert_eq!(db.refusal("SELECT pml_resolve('acme.webapp:mcp:filesystem')").code().code(), "PM001");
}

#[test]
fn a_server_has_versions() {
    let mut db = Database::new().connect();
    let fqdn = db
        .text("SELECT pml_register_server('tavily', 'cloud', 'https://example.com/1', 'v1.2.0')", &[])
        .unwrap();
    assert!(fqdn.starts_with("local.default.mcp.tavily."), "{fqdn}");
    let again = db.text("SELECT pml_register_server('mcp:tavily', code_url => 'https://example.com/2', version_tag => 'v2.0.0')", &[]).unwrap();
    assert_eq!(fqdn, again);
    let url = |db: &mut postgres::Client, spec: &str| {
        db.text("SELECT code_url FROM pml_lookup($1)", &[&spec]).unwrap()
    };
    assert_eq!(url(&mut db, "mcp:tavily"), "https://example.com/2");
    assert_eq!(url(&mut db, "mcp:tavily@v1.2.0"), "https://example.com/1");
    assert_eq!(url(&mut db, "mcp:tavily@v1"), "https://example.com/1");
    // Saying the same again makes no new version.
    db.batch_execute("SELECT pml_register_server('tavily', 'cloud', 'https://example.com/2')").unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pml_history('mcp:tavily')"), 2);
    assert_eq!(db.text("SELECT routing FROM pml_lookup('mcp:tavily')", &[]).unwrap(), "cloud");
    assert_eq!(db.text("SELECT pml_code('mcp:tavily')", &[]), None);
}

#[test]
fn servers_and_capabilities_keep_to_their_names() {
    let mut db = Database::new().connect();
    assert_eq!(db.refusal("SELECT pml_register('return 1', 'mcp:thing')").code().code(), "PM004");
    assert_eq!(db.refusal("SELECT pml_register_server('no spaces')").code().code(), "PM004");
    assert_eq!(db.refusal("SELECT pml_register_server(NULL)").code().code(), "PM004");
    db.batch_execute("SELECT pml_register_server('one'); SELECT pml_rename('mcp:one', 'mcp:two')").unwrap();
    db.query("SELECT pml_resolve('mcp:one'), pml_resolve('mcp:two')", &[]).unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pml_list()"), 0);
}
