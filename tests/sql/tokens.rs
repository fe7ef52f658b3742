//! Bearer tokens: a hash identifies scope and actor until it expires or is revoked; only proxies may check one.

use std::time::Duration;

use pml_tests::{Ask, Database, failure};
use postgres::Client;

const HASH: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn holder(db: &mut Client, hash: &str) -> Option<String> {
    db.query_opt("SELECT concat_ws(' ', org, project, actor) FROM pml_token_check($1)", &[&hash])
        .unwrap()
        .map(|row| row.get(0))
}

fn add(db: &mut Client, hash: &str) -> String {
    db.text("SELECT pml_token_add($1, 'acme', 'webapp', 'alice', 'her laptop')::text", &[&hash]).unwrap()
}

#[test]
fn a_proxy_learns_whose_a_token_is_until_it_is_revoked() {
    let database = Database::new();
    database.create_role("gate", &["pml_proxy"]);
    let (mut admin, mut proxy) = (database.connect(), database.connect_as("gate"));
    assert_eq!(holder(&mut proxy, HASH), None);
    let id = add(&mut admin, &HASH.to_uppercase());
    assert_eq!(holder(&mut proxy, HASH).unwrap(), "acme webapp alice");
    assert_eq!(admin.number("SELECT count(*) FROM pml_token_list() WHERE valid AND label = 'her laptop' AND last_used_at IS NOT NULL"), 1);
    assert_eq!(admin.text(&format!("SELECT pml_token_revoke('{id}')::text"), &[]).unwrap(), "true");
    assert_eq!(admin.text(&format!("SELECT pml_token_revoke('{id}')::text"), &[]).unwrap(), "false");
    assert_eq!(holder(&mut proxy, HASH), None);
    assert_eq!(admin.number("SELECT count(*) FROM pml_token_list() WHERE NOT valid"), 1);
    // A revoked token is never valid again.
    assert_eq!(
        failure(admin.query("SELECT pml_token_add($1, 'a', 'b', 'c')", &[&HASH])).code().code(),
        "22023"
    );
}

#[test]
fn an_expired_token_is_not_valid() {
    let mut db = Database::new().connect();
    db.query(
        "SELECT pml_token_add($1, 'acme', 'webapp', 'alice', expires_at => now() + interval '1 hour')",
        &[&HASH],
    )
    .unwrap();
    assert!(holder(&mut db, HASH).is_some());
    db.batch_execute("UPDATE pml.tokens SET expires_at = now()").unwrap();
    assert_eq!(holder(&mut db, HASH), None);
}

#[test]
fn revoking_is_heard_and_using_is_not() {
    let database = Database::new();
    let (mut db, mut listener) = (database.connect(), database.connect());
    listener.batch_execute("LISTEN pml_tokens_changed").unwrap();
    let id = add(&mut db, HASH);
    holder(&mut db, HASH);
    db.batch_execute("NOTIFY pml_tokens_changed, 'marker'").unwrap();
    db.batch_execute(&format!("SELECT pml_token_revoke('{id}')")).unwrap();
    let mut heard = Vec::new();
    while heard.len() < 2 {
        heard.extend(listener.notifications_for(Duration::from_millis(20)));
    }
    assert_eq!(heard, ["marker".to_owned(), id]);
    db.batch_execute("DELETE FROM pml.tokens").unwrap();
    while heard.len() < 3 {
        heard.extend(listener.notifications_for(Duration::from_millis(20)));
    }
}

#[test]
fn a_use_is_noted_once_a_minute() {
    let mut db = Database::new().connect();
    add(&mut db, HASH);
    let state = |db: &mut Client| db.text("SELECT xmin::text || last_used_at FROM pml.tokens", &[]).unwrap();
    holder(&mut db, HASH);
    let first = state(&mut db);
    holder(&mut db, HASH);
    assert_eq!(state(&mut db), first);
    db.batch_execute("UPDATE pml.tokens SET last_used_at = now() - interval '2 minutes'").unwrap();
    holder(&mut db, HASH);
    assert_eq!(
        db.number("SELECT count(*) FROM pml.tokens WHERE last_used_at > now() - interval '1 minute'"),
        1
    );
}

#[test]
fn who_is_not_meant_to_learns_nothing() {
    let database = Database::new();
    database.create_role("gate", &["pml_proxy"]);
    database.create_role("guest", &[]);
    let id = add(&mut database.connect(), HASH);
    let check = format!("SELECT * FROM pml_token_check('{HASH}')");
    let add = format!("SELECT pml_token_add('{}', 'a', 'b', 'c')", HASH.replace('0', "1"));
    let revoke = format!("SELECT pml_token_revoke('{id}')");
    for who in ["gate", "guest"] {
        let mut db = database.connect_as(who);
        for (statement, code) in [
            ("SELECT * FROM pml.tokens", "42501"),
            ("UPDATE pml.tokens SET actor = 'me'", "42501"),
            ("DELETE FROM pml.tokens", "42501"),
            ("SELECT * FROM pml_token_list()", "PM006"),
            (&add, "PM006"),
            (&revoke, "PM006"),
        ] {
            assert_eq!(db.refusal(statement).code().code(), code, "{who} {statement}");
        }
    }
    assert_eq!(database.connect_as("guest").refusal(&check).code().code(), "42501");
}

#[test]
fn bad_input_is_refused() {
    let mut db = Database::new().connect();
    for arguments in [
        "NULL, 'a', 'b', 'c'",
        "'', 'a', 'b', 'c'",
        "'secret', 'a', 'b', 'c'",
        "repeat('g', 64), 'a', 'b', 'c'",
        "repeat('a', 64), NULL, 'b', 'c'",
        "repeat('a', 64), 'a', 'b.c', 'c'",
        "repeat('a', 64), 'a', 'b', NULL",
        "repeat('a', 64), 'a', 'b', ''",
        "repeat('a', 64), 'a', 'b', E'x\\ny'",
        "repeat('a', 64), 'a', 'b', 'c', expires_at => '2020-01-01'",
    ] {
        let error = db.refusal(&format!("SELECT pml_token_add({arguments})"));
        assert!(["22023", "PM004"].contains(&error.code().code()), "{arguments}: {error:?}");
        assert!(error.hint().is_some(), "{arguments}");
    }
    assert_eq!(db.number("SELECT count(*) FROM pml.tokens"), 0);
    for hash in ["", "x", "é🦀", &"a".repeat(1 << 20)] {
        assert_eq!(holder(&mut db, hash), None);
    }
    assert_eq!(db.query("SELECT * FROM pml_token_check(NULL)", &[]).unwrap().len(), 0);
}
