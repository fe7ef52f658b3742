//! ALTER EXTENSION pml UPDATE: from every released version, the result equals a fresh install.

use std::{fs, path::Path};

use pml_tests::{Ask, Database, extension_folder};
use postgres::Client;

/// Everything that the extension consists of, in words.
fn catalog(db: &mut Client) -> Vec<String> {
    db.texts(
        "SELECT x FROM (
           SELECT 'function ' || pg_get_functiondef(p.oid) || ' ' || coalesce(p.proacl::text, '') || coalesce(obj_description(p.oid, 'pg_proc'), '') || p.proowner::regrole
           FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
           UNION ALL
           SELECT 'column ' || c.oid::regclass || '.' || a.attname || ' ' || a.attnum || format_type(a.atttypid, a.atttypmod) || a.attnotnull
                  || coalesce(pg_get_expr(f.adbin, f.adrelid), '') || coalesce(col_description(c.oid, a.attnum), '') || coalesce(c.relacl::text, '')
                  || a.attstattarget
           FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
           LEFT JOIN pg_attrdef f ON f.adrelid = c.oid AND f.adnum = a.attnum
           WHERE c.relnamespace = 'pml'::regnamespace AND c.relkind IN ('r', 'p')
           UNION ALL SELECT 'view ' || viewname || definition FROM pg_views WHERE schemaname = 'pml'
           UNION ALL SELECT 'secured ' || relname FROM pg_class WHERE relnamespace = 'pml'::regnamespace AND relrowsecurity
           UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'pml'
           UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'pml'::regnamespace
           UNION ALL SELECT 'trigger ' || pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                     WHERE c.relnamespace = 'pml'::regnamespace AND NOT t.tgisinternal
           UNION ALL SELECT 'policy ' || tablename || policyname || cmd || coalesce(qual, '') || coalesce(with_check, '') || roles::text FROM pg_policies WHERE schemaname = 'pml'
           UNION ALL SELECT 'dumped ' || unnest(extconfig)::regclass || ' ' || unnest(extcondition) FROM pg_extension WHERE extname = 'pml'
         ) AS everything (x) ORDER BY 1",
    )
}

fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

fn upgraded_from(version: &str) -> Vec<String> {
    let mut db = Database::new().connect();
    db.batch_execute("DROP EXTENSION pml").unwrap();
    db.batch_execute(&format!("CREATE EXTENSION pml VERSION '{version}'")).unwrap();
    db.batch_execute("SELECT pml_register('return 1', 'kept')").unwrap();
    db.batch_execute("ALTER EXTENSION pml UPDATE").unwrap();
    db.batch_execute("SELECT pml_resolve('kept')").unwrap();
    catalog(&mut db)
}

fn fresh() -> Vec<String> {
    catalog(&mut Database::new().connect())
}

fn differences(one: &[String], other: &[String]) -> Vec<String> {
    one.iter()
        .filter(|line| !other.contains(line))
        .chain(other.iter().filter(|line| !one.contains(line)))
        .cloned()
        .collect()
}

/// sql/released/ holds the install script of every released version, as it was released.
#[test]
fn every_released_version_upgrades_to_this_one() {
    let released = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/released");
    let extension = extension_folder();
    for script in fs::read_dir(released).unwrap().map(|entry| entry.unwrap().path()) {
        let name = script.file_name().unwrap().to_string_lossy().into_owned();
        let Some(old) = name.strip_prefix("pml--").and_then(|rest| rest.strip_suffix(".sql")) else {
            continue;
        };
        let here = extension.join(&name);
        if old == version() {
            let same = fs::read(&script).unwrap() == fs::read(&here).unwrap();
            assert!(
                same,
                "version {old} is released: raise the version and write sql/upgrade/pml--{old}--<new>.sql"
            );
            continue;
        }
        fs::copy(&script, &here).unwrap();
        assert_eq!(differences(&upgraded_from(old), &fresh()), [""; 0], "from {old}");
    }
}

/// The same check on a made-up older version, with its upgrade script and with one that forgets something.
#[test]
fn a_forgotten_change_is_found() {
    let extension = extension_folder();
    let current = fs::read_to_string(extension.join(format!("pml--{}.sql", version()))).unwrap();
    let between = |start: &str, end: &str| {
        let start = current.find(start).unwrap();
        &current[start..start + current[start..].find(end).unwrap() + end.len()]
    };
    let added =
        between("CREATE FUNCTION pml_internal.pml_revoke(", "(admins only); whether there was one';\n");
    let published = between("\n-- public.sql\n", "\n$$;\n");
    let seal = between("\n-- seal.sql\n", "\n-- base_servers.sql\n");
    let whole = [added, published, seal].concat();
    let forgotten = [[added, published].concat(), [added, seal].concat(), [published, seal].concat()];
    let scripts = [&whole, &forgotten[0], &forgotten[1], &forgotten[2]];
    for (number, upgrade) in scripts.into_iter().enumerate() {
        let (old, complete) = (format!("0.0.{number}"), number == 0);
        fs::write(extension.join(format!("pml--{old}.sql")), current.replace(added, "")).unwrap();
        fs::write(extension.join(format!("pml--{old}--{}.sql", version())), upgrade).unwrap();
        let differences = differences(&upgraded_from(&old), &fresh());
        assert_eq!(differences.is_empty(), complete, "{differences:#?}");
    }
}
