//! Where code runs follows from the tools it uses.

use pml_tests::{Ask, Database};

#[test]
fn one_local_tool_makes_it_local() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register_server('tavily', 'cloud')").unwrap();
    for (tools, routing) in [
        ("ARRAY['filesystem:read', 'pml:search']", "local"),
        ("ARRAY['pml:search', 'tavily:search']", "cloud"),
        ("ARRAY['nobody:registered']", "cloud"),
        ("'{}'", "cloud"),
        ("NULL", "cloud"),
        ("ARRAY[NULL, 'shell:exec']", "local"),
    ] {
        assert_eq!(db.text(&format!("SELECT pml_routing({tools})"), &[]).unwrap(), routing, "{tools}");
    }
}

#[test]
fn a_server_of_the_scope_comes_before_the_base_server() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register_server('filesystem', 'cloud')").unwrap();
    assert_eq!(db.text("SELECT pml_routing(ARRAY['filesystem:read'])", &[]).unwrap(), "cloud");
    db.batch_execute("SET pml.project = 'elsewhere'").unwrap();
    assert_eq!(db.text("SELECT pml_routing(ARRAY['filesystem:read'])", &[]).unwrap(), "local");
}

#[test]
fn routing_is_inherited_on_register_and_update() {
    let mut db = Database::new().connect();
    let routing = |db: &mut postgres::Client| db.text("SELECT routing FROM pml_lookup('x')", &[]).unwrap();
    db.batch_execute("SELECT pml_register('return 1', 'x')").unwrap();
    assert_eq!(routing(&mut db), "cloud");
    db.batch_execute("SELECT pml_update('x', 'return await mcp.filesystem.read(args)')").unwrap();
    assert_eq!(routing(&mut db), "local");
    db.batch_execute("SELECT pml_update('x', 'return 2')").unwrap();
    assert_eq!(routing(&mut db), "cloud");
}

#[test]
fn what_is_given_wins() {
    let mut db = Database::new().connect();
    let routing = |db: &mut postgres::Client| db.text("SELECT routing FROM pml_lookup('x')", &[]).unwrap();
    db.batch_execute(
        "SELECT pml_register('return await mcp.filesystem.read(args)', 'x', routing => 'cloud')",
    )
    .unwrap();
    assert_eq!(routing(&mut db), "cloud");
    db.batch_execute("SELECT pml_update('x', 'return await mcp.shell.exec(args)')").unwrap();
    assert_eq!(routing(&mut db), "cloud");
    db.batch_execute("UPDATE pml.capability_records SET routing_explicit = false WHERE display_name = 'x'")
        .unwrap();
    assert_eq!(routing(&mut db), "local");
    db.batch_execute("UPDATE pml.capability_records SET routing = 'cloud' WHERE display_name = 'x'").unwrap();
    db.batch_execute("SELECT pml_update('x', 'return await mcp.shell.exec(args.y)')").unwrap();
    assert_eq!(routing(&mut db), "cloud");
    assert_eq!(db.refusal("SELECT pml_register('return 1', routing => 'moon')").code().code(), "22023");
}

#[test]
fn a_capability_passes_its_routing_on() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return await mcp.filesystem.read(args)', 'data:load')").unwrap();
    assert_eq!(db.text("SELECT pml_routing(ARRAY['data:load'])", &[]).unwrap(), "local");
}
