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
fn a_renamed_server_keeps_the_routing_of_its_former_name() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register_server('near', 'local');
         SELECT pml_register('return await mcp.near.look(args)', 'my:look');
         SELECT pml_rename('mcp:near', 'mcp:nearby')",
    )
    .unwrap();
    for tool in ["near:look", "nearby:look"] {
        assert_eq!(db.text("SELECT pml_routing(ARRAY[$1])", &[&tool]).unwrap(), "local", "{tool}");
    }
    assert_eq!(db.text("SELECT routing FROM pml_lookup('my:look')", &[]).unwrap(), "local");
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

#[test]
fn what_calls_follows_however_deep_and_in_the_same_transaction() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register_server('files', 'cloud');
         SELECT pml_register('return mcp.files.read(args)', 'a:l0');
         DO $$ BEGIN FOR i IN 1..60 LOOP
           PERFORM pml_register(format('return mcp.a.l%s(args)', i - 1), 'a:l' || i);
         END LOOP; END $$;
         SELECT pml_register('await mcp.a.l1(args); return mcp.a.l60(args)', 'a:both');
         SELECT pml_register('return mcp.a.l3({ ...args })', 'a:fixed', routing => 'cloud');
         SELECT pml_register('return mcp.a.fixed(args)', 'a:behind');
         SELECT pml_register('return mcp.other.read(args)', 'a:apart')",
    )
    .unwrap();
    let count = |db: &mut postgres::Client| {
        db.number("SELECT count(*) FROM pml.capability_records WHERE routing = 'local' AND record_type = 'capability'")
    };
    let versions = db.number("SELECT count(*) FROM pml.capability_versions");
    let changed =
        db.text("SELECT max(updated_at)::text FROM pml.capability_records WHERE display_name = 'a:l60'", &[]);
    for (routing, local) in [("local", 62), ("cloud", 0), ("local", 62)] {
        db.batch_execute(&format!("SELECT pml_register_server('files', '{routing}')")).unwrap();
        assert_eq!(count(&mut db), local, "{routing}");
    }
    // A capability that says it itself, and one that gives that up.
    db.batch_execute("UPDATE pml.capability_records SET routing = 'cloud' WHERE display_name = 'a:l2'")
        .unwrap();
    assert_eq!(count(&mut db), 3, "l0, l1, and both through l1");
    db.batch_execute(
        "UPDATE pml.capability_records SET routing_explicit = false WHERE display_name = 'a:l2'",
    )
    .unwrap();
    assert_eq!(count(&mut db), 62);
    // New code of a nested one, and a server that goes and comes back.
    db.batch_execute("SELECT pml_update('a:l0', 'return 0')").unwrap();
    assert_eq!(count(&mut db), 0);
    db.batch_execute("SELECT pml_rollback('a:l0@v1')").unwrap();
    assert_eq!(count(&mut db), 62);
    db.batch_execute("SELECT pml_delete('mcp:files', force => true)").unwrap();
    assert_eq!(count(&mut db), 0);
    // Following makes no version and is nobody's change.
    assert_eq!(db.number("SELECT count(*) FROM pml.capability_versions"), versions + 2);
    assert_eq!(
        db.text("SELECT max(updated_at)::text FROM pml.capability_records WHERE display_name = 'a:l60'", &[]),
        changed
    );
    // A server that comes after the code.
    db.batch_execute("SELECT pml_register_server('other', 'local')").unwrap();
    assert_eq!(db.texts("SELECT display_name FROM pml.capability_records WHERE routing = 'local' AND record_type = 'capability'"), ["a:apart"]);
}

#[test]
fn base_servers_are_followed_from_every_scope_and_circles_end() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "SELECT pml_register('return mcp.shell.run(args)', 'a:a', visibility => 'public');
         SET pml.project = 'second';
         SELECT pml_register('return mcp[\"local.default:a:a\"](args)', 'b:b', visibility => 'public');
         SET pml.project = 'default';
         INSERT INTO pml.capability_dependencies (from_fqdn, to_fqdn) VALUES (pml_resolve('a:a'), pml_resolve('local.second:b:b'))",
    )
    .unwrap();
    assert_eq!(
        db.number("SELECT count(*) FROM pml.capabilities WHERE routing = 'local' AND type = 'capability'"),
        2
    );
    db.batch_execute(
        "UPDATE pml.capability_records SET routing = 'cloud' WHERE id LIKE 'pml.std.mcp.shell.%'",
    )
    .unwrap();
    assert_eq!(
        db.number("SELECT count(*) FROM pml.capabilities WHERE routing = 'local' AND type = 'capability'"),
        0
    );
}
