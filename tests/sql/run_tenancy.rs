//! Tenancy of runs, and that queries under the policies stay cheap.

use pml_tests::{Ask, Database};

use crate::tenancy::{READERS, SCOPES, connect, name_of, setup};

/// Runs, their traces, calls and results belong to the one who ran them.
#[test]
fn runs_are_seen_and_changed_by_their_actor_only() {
    let database = Database::new();
    setup(&database);
    let mut db = database.connect();
    let mut rows = Vec::new();
    for (org, project) in SCOPES {
        for person in ["alice", "bob"] {
            let (actor, mark) = (name_of(&database, person), format!("mark_{}", rows.len()));
            db.batch_execute(&format!(
                "INSERT INTO pml.workflow_state (workflow_id, org, project, actor, intent) VALUES (md5('{mark}')::uuid, '{org}', '{project}', '{actor}', '{mark}');
                 INSERT INTO pml.execution_trace (workflow_id, org, project, user_id, intent, success, duration_ms) VALUES (md5('{mark}')::uuid, '{org}', '{project}', '{actor}', '{mark}', true, 1);
                 INSERT INTO pml.tool_usage (org, project, actor, server_id, tool_id, success, duration_ms) VALUES ('{org}', '{project}', '{actor}', 's', '{mark}', true, 1);
                 INSERT INTO pml.task_results (workflow_id, task_id, org, project, actor, result) VALUES (md5('{mark}')::uuid, 't1', '{org}', '{project}', '{actor}', '\"{mark}\"')"
            ))
            .unwrap();
            rows.push(((org, project), actor, mark));
        }
    }
    for reader in &READERS {
        let mut db = connect(&database, reader);
        let who = format!("{:?}", reader.role);
        let is_proxy = reader.member_of.contains(&"pml_proxy");
        let own = |(scope, actor, _): &&((&str, &str), String, String)| {
            let is_reader = match reader.role {
                Some(_) if is_proxy => actor == reader.actor.unwrap_or_default(),
                Some(role) => *actor == database.role(role),
                None => false,
            };
            reader.sees_all || reader.sees_from.contains(scope) && is_reader
        };
        let mut expected: Vec<&str> = rows.iter().filter(own).map(|(_, _, mark)| mark.as_str()).collect();
        expected.sort_unstable();
        for (view, column) in [("runs", "intent"), ("calls", "tool")] {
            let seen = db.texts(&format!("SELECT {column} FROM pml.{view} ORDER BY 1"));
            assert_eq!(seen, expected, "{who} {view}");
        }
        if reader.sees_all {
            continue;
        }
        for row in &rows {
            let ((org, project), _, mark) = row;
            let call = format!("SELECT pml_task_result(md5('{mark}')::uuid, 't1')");
            let here = reader.scope == (*org, *project);
            assert_eq!(db.query(&call, &[]).is_ok(), own(&row) && here, "{who} {mark}");
        }
        for statement in [
            "INSERT INTO pml.tool_usage (org, project, actor, server_id, tool_id, success, duration_ms) VALUES ('acme', 'webapp', 'alice', 's', 'forged', true, 1)",
            "INSERT INTO pml.workflow_state (org, project, actor) VALUES ('acme', 'webapp', 'alice')",
            "UPDATE pml.workflow_state SET intent = intent",
            "DELETE FROM pml.workflow_state",
            "DELETE FROM pml.task_results",
            "UPDATE pml.tool_usage SET success = true",
            "UPDATE pml.execution_trace SET success = true",
            "UPDATE pml.task_results SET result = '1'",
        ] {
            assert_eq!(db.refusal(statement).code().code(), "42501", "{who} {statement}");
        }
    }
}

/// Row-level security keeps what isn't leakproof from the indexes; lookups must not read all tenants' rows for that.
#[test]
fn look_ups_under_the_policies_reach_their_indexes() {
    let database = Database::new();
    setup(&database);
    let mut db = database.connect();
    db.batch_execute("ANALYZE").unwrap();
    // What the functions ask is asked as this role.
    db.batch_execute("SET ROLE pml_engine; SET enable_seqscan = off").unwrap();
    for (index, query) in [
        (
            "capability_records_scoped_name",
            "SELECT FROM pml.capability_records r WHERE pml_internal.pml_scoped(r.org, r.project, r.display_name) = 'acme.webapp:x'",
        ),
        (
            "capability_records_scoped_code",
            "SELECT FROM pml.capability_records r WHERE pml_internal.pml_scoped(r.org, r.project, r.code_hash) = 'acme.webapp:x'",
        ),
        (
            "capability_aliases_scoped_name",
            "SELECT FROM pml.capability_aliases a WHERE pml_internal.pml_scoped(a.org, a.project, a.alias) = 'acme.webapp:x'",
        ),
        ("capability_records_", "SELECT FROM pml.capability_records r WHERE r.id = 'x'"),
        (
            "tool_names_pkey",
            "SELECT FROM pml.tool_names n WHERE n.org = 'acme' AND n.project = 'webapp' AND n.tool_name = 'x'",
        ),
        (
            "tool_names_name_kind_org_project_key",
            "SELECT FROM pml.tool_names n WHERE n.org = 'acme' AND n.project = 'webapp' AND n.kind = 'tool' AND n.name = 'x'",
        ),
        (
            "workflow_state_pkey",
            "SELECT FROM pml.workflow_state w WHERE w.workflow_id = '00000000-0000-0000-0000-000000000000'",
        ),
    ] {
        let plan = db.texts(&format!("EXPLAIN {query}")).join("\n");
        assert!(
            plan.contains(&format!("using {index}")) || plan.contains(&format!("on {index}")),
            "{query}\n{plan}"
        );
        assert!(plan.contains("Index Cond"), "{plan}");
    }
}
