//! Scopes that call each other's capabilities: they follow changes, wait for nobody, and learn nothing of what they can't see.

use pml_tests::{Ask, Database, Run};
use postgres::Client;
use serde_json::{Value, json};

/// A role with a scope of its own.
fn tenant(database: &Database, name: &str, org: &str) -> Client {
    let role = database.create_role(name, &[]);
    database.connect().batch_execute(&format!("SELECT pml_grant('{role}', '{org}', 'webapp')")).unwrap();
    let mut client = database.connect_as(name);
    client
        .batch_execute(&format!("SET pml.org = '{org}'; SET pml.project = 'webapp'; SET lock_timeout = '2s'"))
        .unwrap();
    client
}

fn routing(db: &mut Client, name: &str) -> [String; 3] {
    [
        format!("SELECT routing FROM pml_lookup('{name}')"),
        format!("SELECT pml_whois('{name}') ->> 'routing'"),
        format!("SELECT routing FROM pml_list('{name}')"),
    ]
    .map(|question| db.text(&question, &[]).unwrap())
}

fn edges(db: &mut Client, name: &str) -> Value {
    db.query_one("SELECT pml_begin(jsonb_build_object('capability', $1::text)) #> '{dag,edges}'", &[&name])
        .unwrap()
        .get(0)
}

#[test]
fn callers_in_other_scopes_are_neither_held_up_nor_left_behind() {
    let database = Database::new();
    let (mut bob, mut alice) = (tenant(&database, "bob", "acme"), tenant(&database, "alice", "other"));
    bob.batch_execute("SELECT pml_register('return args.x', 'shared', visibility => 'public')").unwrap();
    alice
        .batch_execute(
            "SELECT pml_register_tools('s', '[{\"name\": \"t\", \"outputSchema\": {\"type\": \"object\",
               \"properties\": {\"newparam\": {\"type\": \"string\"}}}}]');
             SELECT pml_register('const r = await mcp.s.t({}); return mcp[\"acme.webapp:shared\"](r)', 'uses');
             SELECT pml_register('return mcp.uses({})', 'deep')",
        )
        .unwrap();
    let before = edges(&mut alice, "uses");

    // Bob's changes lock no row of Alice's.
    bob.batch_execute(
        "BEGIN; SELECT pml_update('shared', 'return args.newparam.length'), pml_register_server('s', routing => 'local');
         SELECT pml_update('shared', 'await mcp.s.t({}); return args.newparam.length')",
    )
    .unwrap();
    alice.run(&json!({"capability": "uses"}), &json!(1));
    alice.batch_execute("SELECT pml_rename('uses', description => 'calls shared')").unwrap();
    bob.batch_execute("COMMIT").unwrap();

    // They reach her callers with the commit.
    assert_ne!(edges(&mut alice, "uses"), before);
    assert_eq!(routing(&mut alice, "uses"), ["local"; 3]);
    assert_eq!(routing(&mut alice, "deep"), ["local"; 3]);
    alice.batch_execute("SELECT pml_register('return mcp.deep({})', 'new')").unwrap();
    assert_eq!(routing(&mut alice, "new"), ["local"; 3]);

    // Nor do Alice's callers hold up Bob.
    alice.batch_execute("BEGIN; SELECT pml_rename('uses', description => 'left open')").unwrap();
    bob.batch_execute(
        "SELECT pml_register_server('s', routing => 'cloud'), pml_update('shared', 'return args.other')",
    )
    .unwrap();
    alice.batch_execute("COMMIT").unwrap();
    assert_eq!(edges(&mut alice, "uses"), before);
    assert_eq!(routing(&mut alice, "new"), ["cloud"; 3]);
}

#[test]
fn what_is_derived_for_a_record_tells_nothing_of_what_its_creator_can_not_see() {
    let database = Database::new();
    let (mut bob, mut alice) = (tenant(&database, "bob", "acme"), tenant(&database, "alice", "other"));
    alice.batch_execute("SELECT pml_register_server('files', routing => 'local')").unwrap();
    let code = "const r = await mcp.files.read({ path: args.hidden_in }); return { hidden_out: r }";
    let hidden = alice.text("SELECT pml_register($1, 'secret')", &[&code]).unwrap();
    let missing = format!("{}0000", &hidden[..hidden.len() - 4]);

    let schema =
        |field: &str| format!(r#"{{"type": "object", "properties": {{"{field}": {{"type": "string"}}}}}}"#);
    let learnt = [("probe", &hidden), ("control", &missing)].map(|(name, fqdn)| {
        let code = format!("const r = await mcp.s.t({{}}); const k = await mcp[\"{fqdn}\"](r); return mcp.s.u(k)");
        let tools = |output: &str, input: &str| {
            format!(r#"[{{"name": "t", "outputSchema": {output}}}, {{"name": "u", "inputSchema": {input}}}]"#)
        };
        let plain = r#"{"type": "object"}"#;
        bob.batch_execute(&format!("SELECT pml_register_tools('s', '{}')", tools(plain, plain))).unwrap();
        bob.execute("SELECT pml_register($1, $2)", &[&code, &name]).unwrap();
        // Both are computed anew.
        let guess = tools(&schema("hidden_in"), &schema("hidden_out"));
        bob.batch_execute(&format!(
            "SELECT pml_register_tools('s', '{guess}');
             SELECT pml_register_server('s', routing => 'local'); SELECT pml_register_server('s', routing => 'cloud')"
        ))
        .unwrap();
        (edges(&mut bob, name), routing(&mut bob, name))
    });
    assert_eq!(learnt[0], learnt[1]);
}

#[test]
fn a_serializable_transaction_shows_no_reads_of_rows() {
    let database = Database::new();
    let (mut bob, mut alice) = (tenant(&database, "bob", "acme"), tenant(&database, "alice", "other"));
    let hidden = alice.text("SELECT pml_register('return 1', 'secret')", &[]).unwrap();
    for call in ["pml_resolve", "pml_whois", "pml_code"] {
        let mut locks = |spec: &str| {
            bob.batch_execute("BEGIN ISOLATION LEVEL SERIALIZABLE; SAVEPOINT asked").unwrap();
            let refused = bob.batch_execute(&format!("SELECT {call}('{spec}')"));
            assert!(refused.is_err(), "{call} {spec}");
            bob.batch_execute("ROLLBACK TO asked").unwrap();
            let seen = bob.texts(
                "SELECT concat_ws(' ', l.locktype, l.relation::regclass, l.page, l.tuple) FROM pg_locks l
                 WHERE l.mode = 'SIReadLock' AND l.pid = pg_backend_pid() ORDER BY 1",
            );
            bob.batch_execute("ROLLBACK").unwrap();
            seen
        };
        let at_hidden = locks(&hidden);
        assert!(at_hidden.iter().all(|lock| lock.starts_with("relation ")), "{call}: {at_hidden:?}");
        assert_eq!(at_hidden, locks("other.webapp.util.secret.0000"), "{call}");
        assert_eq!(at_hidden, locks("other.webapp:secret"), "{call}");
        assert_eq!(at_hidden, locks("other.nowhere:secret"), "{call}");
    }
    // It still works for what is visible.
    bob.batch_execute("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT pml_register('return 1', 'mine'); COMMIT")
        .unwrap();
    assert!(bob.text("SELECT pml_resolve('mine')", &[]).is_some());
}
