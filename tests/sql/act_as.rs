//! pml_act_as: a proxy sets scope and actor for one transaction.

use pml_tests::{Ask, Database, failure};

const WHO: &str =
    "SELECT concat_ws(' ', pml_org(), pml_project(), pml_actor(), current_setting('application_name'))";

#[test]
fn a_statement_acts_for_whom_it_names_and_the_next_one_for_nobody() {
    let database = Database::new();
    let proxy = database.create_role("gate", &["pml_proxy"]);
    let mut db = database.connect_as("gate");
    let who = db.text(&format!("{WHO} FROM pml_act_as('acme', 'webapp', 'alice', 'r1')"), &[]).unwrap();
    assert_eq!(who, "acme webapp alice pml/r1");
    let after = db.text(WHO, &[]).unwrap();
    assert_eq!(after.trim(), format!("local default {proxy}"));
}

#[test]
fn inside_a_transaction_it_lasts_until_the_end_and_can_be_changed() {
    let database = Database::new();
    database.create_role("gate", &["pml_proxy"]);
    let mut db = database.connect_as("gate");
    let mut transaction = db.transaction().unwrap();
    transaction.query("SELECT pml_act_as('acme', 'webapp', 'alice', 'r1')", &[]).unwrap();
    transaction.query("SELECT pml_register('return 1', 'hers')", &[]).unwrap();
    transaction.query("SELECT pml_act_as('acme', 'webapp', 'bob', NULL)", &[]).unwrap();
    let seen: i64 = transaction
        .query_one("SELECT count(*) FROM pml.capabilities WHERE org = 'acme'", &[])
        .unwrap()
        .get(0);
    assert_eq!(seen, 0, "bob sees what is alice's alone");
    transaction.commit().unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pml.capabilities WHERE org = 'acme'"), 0);
}

#[test]
fn only_proxies_and_admins_may_act_for_others() {
    let database = Database::new();
    database.create_role("boss", &["pml_admin"]);
    database.create_role("guest", &[]);
    let act = "SELECT pml_act_as('acme', 'webapp', 'alice', 'r')";
    database.connect_as("boss").query(act, &[]).unwrap();
    let error = database.connect_as("guest").refusal(act);
    assert_eq!(error.code().code(), "PM006");
    assert!(error.hint().unwrap().contains("pml_proxy"));
}

#[test]
fn a_bad_scope_or_actor_is_refused_and_nothing_is_set() {
    let database = Database::new();
    database.create_role("gate", &["pml_proxy"]);
    let mut db = database.connect_as("gate");
    let long = "x".repeat(257);
    for (org, project, actor, code) in [
        (None, Some("webapp"), Some("alice"), "PM004"),
        (Some(""), Some("webapp"), Some("alice"), "PM004"),
        (Some("a.b"), Some("webapp"), Some("alice"), "PM004"),
        (Some("acme"), None, Some("alice"), "PM004"),
        (Some("acme"), Some("we bapp"), Some("alice"), "PM004"),
        (Some("acme"), Some("webapp"), None, "22023"),
        (Some("acme"), Some("webapp"), Some(""), "22023"),
        (Some("acme"), Some("webapp"), Some("a\nb"), "22023"),
        (Some("acme"), Some("webapp"), Some(long.as_str()), "22023"),
    ] {
        let before = db.text(WHO, &[]);
        let error = failure(db.query("SELECT pml_act_as($1, $2, $3, 'r')", &[&org, &project, &actor]));
        assert_eq!(error.code().code(), code, "{org:?} {project:?} {actor:?}");
        assert_eq!(db.text(WHO, &[]), before);
    }
}

#[test]
fn any_request_id_is_taken() {
    let database = Database::new();
    database.create_role("gate", &["pml_proxy"]);
    let mut db = database.connect_as("gate");
    for id in ["", "é🦀\n", &"x".repeat(1 << 20)] {
        db.query("SELECT pml_act_as('acme', 'webapp', 'alice', $1)", &[&id]).unwrap();
    }
}
