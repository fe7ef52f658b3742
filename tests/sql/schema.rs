//! The schema: every public object is on the list, every column has its comment, every index is there.

use std::collections::BTreeSet;

use pml_tests::{Ask, Database};

const LISTED: &str = include_str!("../../sql/public_objects.txt");

fn listed() -> BTreeSet<String> {
    LISTED
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.rsplit_once(' ').expect("object and version").0.trim().to_owned())
        .collect()
}

#[test]
fn the_list_of_public_objects_is_the_catalog() {
    let mut db = Database::new().connect();
    let there = db.texts(
        "SELECT CASE d.classid
                  WHEN 'pg_proc'::regclass THEN 'function ' || replace(d.objid::regprocedure::text, 'public.', '')
                  ELSE CASE c.relkind WHEN 'S' THEN 'sequence ' WHEN 'v' THEN 'view ' ELSE 'table ' END || d.objid::regclass END
         FROM pg_depend d LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
         LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
         WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
           AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pml')
           AND (p.pronamespace <> 'pml_internal'::regnamespace OR c.relkind IN ('r', 'p', 'v', 'S'))",
    );
    let there: BTreeSet<String> = there.into_iter().collect();
    let listed = listed();
    let missing: Vec<_> = there.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&there).collect();
    assert!(missing.is_empty() && gone.is_empty(), "not listed: {missing:#?}\nnot there: {gone:#?}");
}

#[test]
fn everything_has_a_comment() {
    let mut db = Database::new().connect();
    let silent = db.texts(
        "SELECT c.oid::regclass || coalesce('.' || a.attname, '')
         FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         WHERE c.relnamespace = 'pml'::regnamespace AND c.relkind IN ('r', 'p')
           AND (obj_description(c.oid) IS NULL OR NOT c.relispartition AND col_description(c.oid, a.attnum) IS NULL)
         UNION ALL
         SELECT p.oid::regprocedure::text FROM pg_proc p
         WHERE p.proname LIKE 'pml\\_%' AND obj_description(p.oid, 'pg_proc') IS NULL",
    );
    assert_eq!(silent, [""; 0]);
}

#[test]
fn functions_that_run_sql_pin_their_search_path() {
    let mut db = Database::new().connect();
    let loose = db.texts(
        "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
         WHERE p.proname LIKE 'pml\\_%' AND l.lanname IN ('plpgsql', 'sql') AND p.prosqlbody IS NULL
           AND NOT coalesce(p.proconfig, '{}') @> ARRAY['search_path=pg_catalog, pg_temp']",
    );
    assert_eq!(loose, [""; 0]);
    let foreign = db.texts(
        "SELECT p.oid::regprocedure::text FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
         WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
           AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pml') AND p.proname NOT LIKE 'pml\\_%'",
    );
    assert_eq!(foreign, [""; 0]);
}

/// A bare name in an SQL function is a column's first: a column that is added later would take a parameter's place unseen.
/// So each function is made anew with other names for its parameters, which bare ones don't find.
#[test]
fn sql_functions_qualify_their_parameters() {
    let mut db = Database::new().connect();
    let functions = db
        .query(
            "SELECT p.proname::text, p.prosrc, pg_get_function_result(p.oid), (p.proargnames)[1:p.pronargs],
                    ARRAY(SELECT format_type(a, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS t (a, n) ORDER BY n)
             FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
             WHERE p.pronamespace = 'pml_internal'::regnamespace AND l.lanname = 'sql' AND p.prosqlbody IS NULL AND p.pronargs > 0",
            &[],
        )
        .unwrap();
    assert!(functions.len() > 20);
    let mut bare = Vec::new();
    for row in functions {
        let (name, mut body, result): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        let (names, kinds): (Vec<String>, Vec<String>) = (row.get(3), row.get(4));
        for parameter in &names {
            for written in [format!("{name}.{parameter}"), format!("{name}.\"{parameter}\"")] {
                body = body.replace(&written, &format!("{name}.renamed_{parameter}"));
            }
        }
        let parameters: Vec<String> =
            names.iter().zip(&kinds).map(|(name, kind)| format!("renamed_{name} {kind}")).collect();
        let create = format!(
            "CREATE FUNCTION pg_temp.{name}({}) RETURNS {result} LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $function$ {body} $function$",
            parameters.join(", ")
        );
        if let Err(error) = db.batch_execute(&create) {
            bare.push(format!("{name}: {}", error.as_db_error().map_or("", |error| error.message())));
        }
    }
    assert_eq!(bare, [""; 0]);
}

/// By name, and with the function's name where a column could be meant.
#[test]
fn no_function_calls_its_parameters_by_number() {
    let mut db = Database::new().connect();
    let numbered = db.texts(
        "SELECT p.oid::regprocedure::text FROM pg_proc p
         WHERE p.pronamespace = 'pml_internal'::regnamespace AND p.prosrc ~ '\\$[0-9]'",
    );
    assert_eq!(numbered, [""; 0]);
}

#[test]
fn the_columns_and_indexes_that_were_asked_for() {
    let mut db = Database::new().connect();
    for (table, columns) in [
        (
            "capability_records",
            "id display_name org project namespace action hash created_by created_at updated_by updated_at version
             version_tag ttl cache_policy parent_id forked_from verified signature usage_count success_count
             total_latency_ms tags visibility code_snippet parameters_schema description tools_used routing
             record_type code_url",
        ),
        ("capability_aliases", "alias org project target_fqdn created_at"),
        (
            "capability_versions",
            "id capability_fqdn version version_tag code_snippet parameters_schema updated_by updated_at change_summary",
        ),
        ("capability_dependencies", "from_fqdn to_fqdn edge_type"),
        ("capability_rename_history", "id capability_id old_name new_name renamed_at renamed_by"),
        ("tool_schema", "tool_id server_id name description input_schema output_schema cached_at"),
        ("tool_usage", "tool_id server_id success duration_ms"),
        ("execution_trace", "capability_id executed_path decisions task_results success"),
        ("task_results", "workflow_id task_id result"),
        ("workflow_state", "workflow_id intent dag learning_context expires_at"),
        ("scope_grants", "role_name org project"),
    ] {
        let there = db.texts(&format!("SELECT attname::text FROM pg_attribute WHERE attrelid = 'pml.{table}'::regclass AND attnum > 0"));
        for column in columns.split_whitespace() {
            assert!(there.iter().any(|name| name == column), "{table}.{column}");
        }
    }
    let indexes = db.texts(
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'pml' AND tablename = 'capability_records'",
    );
    for wanted in [
        "btree (org, project)",
        "btree (org, project, display_name)",
        "btree (namespace)",
        "btree (created_by)",
        "gin (tags)",
        "btree (visibility)",
    ] {
        assert!(indexes.iter().any(|index| index.ends_with(wanted)), "{wanted}: {indexes:#?}");
    }
}

#[test]
fn resolve_reads_the_columns_that_it_thinks_it_reads() {
    let mut db = Database::new().connect();
    let first = db.texts(
        "SELECT attname::text FROM pg_attribute WHERE attrelid = 'pml.capability_records'::regclass AND attnum BETWEEN 1 AND 10 ORDER BY attnum",
    );
    assert_eq!(
        first,
        [
            "id",
            "display_name",
            "org",
            "project",
            "visibility",
            "created_by",
            "deleted_at",
            "version",
            "version_tag",
            "created_at"
        ]
    );
}

#[test]
fn only_being_used_goes_unguarded() {
    let mut db = Database::new().connect();
    for trigger in ["capability_records_a_guard", "capability_records_keep"] {
        let unguarded = db.texts(&format!(
            "SELECT a.attname::text FROM pg_attribute a JOIN pg_trigger t ON t.tgrelid = a.attrelid
             WHERE t.tgname = '{trigger}' AND a.attnum > 0 AND a.attnum <> ALL (t.tgattr) AND a.attgenerated = '' ORDER BY 1"
        ));
        assert_eq!(unguarded, ["success_count", "total_latency_ms", "usage_count"], "{trigger}");
    }
}

/// `sql/triggers.sql` shows every trigger, each after those that fire before it for the same event.
#[test]
fn the_list_of_triggers_is_in_firing_order() {
    let mut db = Database::new().connect();
    let listed: Vec<&str> = include_str!("../../sql/triggers.sql")
        .lines()
        .filter_map(|line| line.strip_prefix("CREATE TRIGGER ")?.split_whitespace().next())
        .collect();
    // Before the statement, before each row, after each row, after the statement; those of a kind by name.
    let fired = db.texts(
        "SELECT string_agg(t.tgname, ' ' ORDER BY t.tgtype & 2 = 0,
                           ((t.tgtype & 2 = 0) = (t.tgtype & 1 = 0)), t.tgname COLLATE \"C\")
         FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid,
              unnest(ARRAY[4, 8, 16, 32]) AS event
         WHERE c.relnamespace = 'pml'::regnamespace AND NOT t.tgisinternal AND t.tgtype & event <> 0
         GROUP BY c.relname, event",
    );
    let mut there = BTreeSet::new();
    for order in &fired {
        let order: Vec<&str> = order.split(' ').collect();
        let in_list: Vec<&str> = listed.iter().copied().filter(|name| order.contains(name)).collect();
        assert_eq!(in_list, order, "sql/triggers.sql has another order");
        there.extend(order);
    }
    assert_eq!(there, listed.iter().copied().collect(), "sql/triggers.sql isn't what the catalog has");
}

#[test]
fn the_columns_that_are_read_by_position() {
    let mut db = Database::new().connect();
    let claims = db.texts("SELECT attnum || ' ' || attname FROM pg_attribute WHERE attrelid = 'pml.name_claims'::regclass AND attname IN ('fqdn', 'reserved_until') ORDER BY attnum");
    assert_eq!(claims, ["4 fqdn", "6 reserved_until"]);
}

#[test]
fn dropping_the_extension_leaves_nothing_behind() {
    let mut db = Database::new().connect();
    db.batch_execute("SELECT pml_register('return 1', 'x')").unwrap();
    db.batch_execute("DROP EXTENSION pml").unwrap();
    assert_eq!(db.number("SELECT count(*) FROM pg_namespace WHERE nspname = 'pml'"), 0);
    assert_eq!(db.number("SELECT count(*) FROM pg_proc WHERE proname LIKE 'pml\\_%'"), 0);
    assert_eq!(db.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'capability\\_%'"), 0);
    db.batch_execute("CREATE EXTENSION pml; SELECT pml_register('return 1', 'x')").unwrap();
}

#[test]
fn functions_go_to_the_schema_that_is_named() {
    let mut db = Database::new().connect();
    db.batch_execute(
        "DROP EXTENSION pml; CREATE SCHEMA \"my Tools\"; CREATE EXTENSION pml SCHEMA \"my Tools\"",
    )
    .unwrap();
    let fqdn = db.text("SELECT \"my Tools\".pml_register('return 1', 'x')", &[]).unwrap();
    assert_eq!(db.text("SELECT \"my Tools\".pml_resolve('x')", &[]).unwrap(), fqdn);
    db.batch_execute("SET search_path = \"my Tools\"; SELECT pml_rename('x', 'y'); SELECT pml_list()")
        .unwrap();
    let error = db.refusal("SELECT pml_resolve('z')");
    assert_eq!(error.code().code(), "PM001");
}
