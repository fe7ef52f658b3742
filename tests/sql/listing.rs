//! Pages of listings: the rows that a naive query gives, read from indexes.

use pml_tests::{Ask, Database};
use postgres::Client;
use serde_json::Value;

/// Records `from` to `to` of several scopes, creators and visibilities, as an import writes them.
fn fill(db: &mut Client, from: i32, to: i32, people: &[&str]) {
    db.batch_execute("SET session_replication_role = replica").unwrap();
    db.execute(
        "INSERT INTO pml.capability_records
           (id, display_name, org, project, visibility, created_by, record_type, version_tag, namespace, action, hash, code_hash,
            updated_by, code_snippet, created_at, usage_count, success_count, tags, deleted_at)
         SELECT concat_ws('.', 'acme', project, ns, 'a' || i, 'abcd'), name, 'acme', project,
                ('{private,private,private,project,org,public}'::text[])[1 + random(6)], ($3::text[])[1 + random(cardinality($3::text[]))],
                CASE WHEN name LIKE 'mcp:%' THEN 'mcp-server' ELSE 'capability' END, CASE WHEN random(2) = 0 THEN 'v1.0.' || i END,
                ns, 'a' || i, 'abcd', md5(i::text), 'x',
                CASE WHEN name NOT LIKE 'mcp:%' THEN 'return ' || i END, timestamptz '2026-01-01' + random(50) * interval '1 hour',
                CASE random(3) WHEN 0 THEN 0 ELSE random(40) END, 0, CASE random(3) WHEN 0 THEN '{io}' ELSE '{}' END::text[],
                CASE WHEN random(10) = 0 THEN now() END
         FROM (SELECT i, ('{web,web,web,shop}'::text[])[1 + random(4)] AS project, ('{fs,api}'::text[])[1 + random(2)] AS ns,
                      ('{fs:x,api:x,x,unnamed_,mcp:x}'::text[])[1 + random(5)] || md5(i::text) AS name
               FROM generate_series($1::integer, $2::integer) AS i) AS drawn",
        &[&from, &to, &people],
    )
    .unwrap();
    db.batch_execute("RESET session_replication_role").unwrap();
}

/// As `random()`, but below `limit`, and the same in every run.
const RANDOM: &str = "CREATE FUNCTION random(bound integer) RETURNS integer LANGUAGE sql VOLATILE
                      RETURN floor(random() * bound)::integer; SELECT setseed(0.5)";

struct Reader {
    db: Client,
    /// None sees everything.
    actor: Option<String>,
}

const PATTERNS: [(&str, &str); 6] = [
    ("fs:*", "fs:%"),
    ("*1f*", "%1f%"),
    ("api:x?*", "api:x_%"),
    ("unnamed_*", "unnamed\\_%"),
    ("", ""),
    ("x*", "x%"),
];

#[test]
fn pages_are_those_of_a_naive_query() {
    let database = Database::new();
    let mut admin = database.connect();
    let (ann, bob) = (database.create_role("ann", &[]), "bob".to_owned());
    database.create_role("proxy", &["pml_proxy"]);
    admin.batch_execute(RANDOM).unwrap();
    fill(&mut admin, 1, 600, &[&ann, &bob, "postgres"]);
    admin
        .batch_execute(&format!(
            "INSERT INTO pml.capability_usage (capability_fqdn, uses, successes, latency_ms)
             SELECT r.id, random(30), 0, 0 FROM pml.capability_records r, generate_series(1, 2) WHERE random(4) = 0;
             SELECT pml_grant('{ann}', 'acme', 'web')"
        ))
        .unwrap();
    let mut readers = [
        Reader { db: database.connect(), actor: None },
        Reader { db: database.connect_as("ann"), actor: Some(ann) },
        Reader { db: database.connect_as("proxy"), actor: Some(bob.clone()) },
    ];
    for reader in &mut readers {
        let actor = reader.actor.as_deref().unwrap_or_default();
        reader
            .db
            .batch_execute(&format!(
                "SET pml.org = 'acme'; SET pml.project = 'web'; SET pml.actor = '{actor}'"
            ))
            .unwrap();
    }
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..400 {
        let reader = &mut readers[round % 3];
        let actor = reader.actor.as_deref().map_or("NULL".to_owned(), |actor| format!("'{actor}'"));
        let sees = format!("({actor} IS NULL OR r.visibility <> 'private' OR r.created_by = {actor})");
        let (mut arguments, mut conditions) = (Vec::new(), vec![sees, "r.deleted_at IS NULL".to_owned()]);
        let mut ask = |argument: String, condition: &str| {
            arguments.push(argument);
            conditions.push(condition.to_owned());
        };
        let (sort, order) =
            random.choice([("usage", "uses DESC,"), ("name", ""), ("created", "created_at DESC,")]).unwrap();
        ask(format!("sort_by => '{sort}'"), "true");
        match random
            .choice([None, None, Some("private"), Some("project"), Some("org"), Some("public")])
            .unwrap()
        {
            None => ask("visibility => NULL".into(), "r.project = 'web'"),
            Some(seen @ ("org" | "public")) => {
                ask(format!("visibility => '{seen}'"), &format!("r.visibility = '{seen}'"));
            }
            Some(seen) => ask(
                format!("visibility => '{seen}'"),
                &format!("r.project = 'web' AND r.visibility = '{seen}'"),
            ),
        }
        match random.u32(0..6) {
            0 => ask("record_type => NULL".into(), "true"),
            1 => ask("record_type => 'mcp-server'".into(), "r.record_type = 'mcp-server'"),
            _ => ask("record_type => 'capability'".into(), "r.record_type = 'capability'"),
        }
        if random.u32(0..3) == 0 {
            let (glob, like) = random.choice(PATTERNS).unwrap();
            ask(format!("pattern => '{glob}'"), &format!("r.display_name LIKE '{like}'"));
        }
        match random.u32(0..12) {
            0 => ask("named_only => true".into(), "r.display_name NOT LIKE 'unnamed\\_%'"),
            1 => ask("unnamed_only => true".into(), "r.display_name LIKE 'unnamed\\_%'"),
            2 => ask("tags => '{io}'".into(), "r.tags @> '{io}'"),
            3 => ask("created_by => '*bob'".into(), "r.created_by LIKE '%bob'"),
            4 => ask("version_tag => 'v1.*'".into(), "r.version_tag LIKE 'v1.%'"),
            5 => ask(
                "namespace => 'f*'".into(),
                "CASE WHEN strpos(r.display_name, ':') > 0 THEN r.display_name ELSE r.namespace END LIKE 'f%'",
            ),
            _ => {}
        }
        let (limit, offset) = (random.u32(0..100), if random.bool() { 0 } else { random.u32(0..100) });
        let page = format!(
            "SELECT fqdn FROM pml_list({}, \"limit\" => {limit}, \"offset\" => {offset})",
            arguments.join(", ")
        );
        let naive = format!(
            "SELECT r.id FROM (SELECT r.*, r.usage_count + coalesce((SELECT sum(u.uses) FROM pml.capability_usage u
                                 WHERE u.capability_fqdn = r.id), 0) AS uses
                               FROM pml.capability_records r WHERE r.org = 'acme' OR r.visibility = 'public') AS r
             WHERE {} ORDER BY {order} display_name COLLATE \"C\", id LIMIT {limit} OFFSET {offset}",
            conditions.join(" AND ")
        );
        assert_eq!(reader.db.texts(&page), admin.texts(&naive), "{page}\n{naive}");
        let whole = format!("SELECT count(*) FROM pml_list({})", arguments.join(", "));
        let all = naive.replace(&format!("LIMIT {limit} OFFSET {offset}"), "");
        assert_eq!(
            reader.db.number(&whole),
            admin.number(&format!("SELECT count(*) FROM ({all}) AS a")),
            "{whole}"
        );
    }
}

fn pages_read(db: &mut Client, query: &str) -> u64 {
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {query}");
    let plan = (0..3).map(|_| db.query_one(&explain, &[]).unwrap().get::<_, Value>(0)).last().unwrap();
    ["Shared Hit Blocks", "Shared Read Blocks"].iter().map(|key| plan[0]["Plan"][key].as_u64().unwrap()).sum()
}

#[test]
fn a_page_reads_no_more_of_ten_times_as_many_capabilities() {
    let database = Database::new();
    let mut admin = database.connect();
    database.create_role("proxy", &["pml_proxy"]);
    admin.batch_execute(RANDOM).unwrap();
    let mut readers = [database.connect(), database.connect_as("proxy")];
    for reader in &mut readers {
        reader
            .batch_execute(
                "SET pml.org = 'acme'; SET pml.project = 'web'; SET pml.actor = 'ann'; SET jit = off",
            )
            .unwrap();
    }
    let mut before = Vec::new();
    for count in [2_000, 20_000] {
        let stored: i32 =
            i32::try_from(admin.number("SELECT count(*) FROM pml.capability_records WHERE org = 'acme'"))
                .unwrap();
        fill(&mut admin, stored + 1, count, &["ann", "bob"]);
        // What nobody but bob sees is used the most.
        admin
            .batch_execute(
                "SET session_replication_role = replica;
                 UPDATE pml.capability_records SET usage_count = 1000 WHERE visibility = 'private' AND created_by = 'bob' AND org = 'acme';
                 RESET session_replication_role",
            )
            .unwrap();
        admin.batch_execute("VACUUM ANALYZE pml.capability_records").unwrap();
        let mut read = Vec::new();
        for reader in &mut readers {
            for query in [
                "pml_list(\"limit\" => 50)",
                "pml_list(\"limit\" => 50, \"offset\" => 99)",
                "pml_list(\"limit\" => 50, sort_by => 'name')",
                "pml_list(\"limit\" => 50, sort_by => 'created', \"offset\" => 50)",
                "pml_list(\"limit\" => 50, visibility => 'private')",
                "pml_list(\"limit\" => 50, visibility => 'org')",
                "pml_list(\"limit\" => 50, visibility => 'public', sort_by => 'created')",
                "pml_list(\"limit\" => 50, named_only => true, tags => '{io}')",
                "pml_list('fs:*', \"limit\" => 50, sort_by => 'name')",
                "pml_list('fs:x00*', \"limit\" => 5)",
                "pml_list(\"limit\" => 50, record_type => NULL)",
                "pml_tools(most => 50)",
            ] {
                read.push((query, pages_read(reader, &format!("SELECT * FROM {query}"))));
            }
        }
        if before.is_empty() {
            before = read;
            continue;
        }
        // A level more in an index, and wider spread; each of both would read ten times as much otherwise.
        let more: Vec<_> = before.iter().zip(&read).filter(|(few, many)| many.1 > few.1 * 2 + 50).collect();
        assert!(more.is_empty(), "{more:#?}\n{before:?}\n{read:?}");
    }
}
