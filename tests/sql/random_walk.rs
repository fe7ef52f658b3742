//! A random walk over all changes from several connections, against a plain model: whatever name, alias, FQDN or
//! version was ever handed out resolves just as the model says.

use std::collections::BTreeMap;

use pml_tests::Database;
use postgres::Client;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

const NAMES: usize = 12;
const CODES: usize = 30;

#[derive(Debug, Clone)]
enum Step {
    Register { name: Option<usize>, code: usize },
    Update { name: usize, code: usize, tagged: bool },
    Rename { from: usize, to: usize },
    Release { name: usize },
    Delete { name: usize },
    Fork { from: usize, to: usize },
    Rollback { name: usize, version: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES;
    prop_oneof![
        4 => (proptest::option::weighted(0.8, name()), 0..CODES).prop_map(|(name, code)| Step::Register { name, code }),
        4 => (name(), 0..CODES, any::<bool>()).prop_map(|(name, code, tagged)| Step::Update { name, code, tagged }),
        6 => (name(), name()).prop_map(|(from, to)| Step::Rename { from, to }),
        1 => name().prop_map(|name| Step::Release { name }),
        1 => name().prop_map(|name| Step::Delete { name }),
        2 => (name(), name()).prop_map(|(from, to)| Step::Fork { from, to }),
        2 => (name(), 1usize..5).prop_map(|(name, version)| Step::Rollback { name, version }),
    ]
}

#[derive(Debug, Default)]
struct Record {
    /// The code of each version; the last is the current one.
    versions: Vec<String>,
    /// The tag of each version.
    tags: Vec<Option<String>>,
    deleted: bool,
}

#[derive(Debug, PartialEq, Clone)]
enum Holder {
    Name(String),
    Alias(String),
    Reserved,
}

/// What the registry should be, by FQDN and by name.
#[derive(Debug, Default)]
struct Model {
    records: BTreeMap<String, Record>,
    names: BTreeMap<String, Holder>,
    tags: usize,
}

fn name(number: usize) -> String {
    format!("ns{}:do_{number}", number % 3)
}

fn code(number: usize) -> String {
    format!("return {number}")
}

fn attempt(
    db: &mut Client,
    query: &str,
    values: &[&(dyn postgres::types::ToSql + Sync)],
) -> Result<String, String> {
    match db.query_one(query, values) {
        Ok(row) => Ok(row.get(0)),
        Err(error) => Err(error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned())),
    }
}

impl Model {
    /// The live record that a name or alias stands for.
    fn target(&self, name: &str) -> Option<String> {
        match self.names.get(name)? {
            Holder::Name(fqdn) | Holder::Alias(fqdn) => Some(fqdn.clone()),
            Holder::Reserved => None,
        }
    }

    fn current_name(&self, fqdn: &str) -> String {
        let held = |holder: &Holder| *holder == Holder::Name(fqdn.to_owned());
        self.names.iter().find(|(_, holder)| held(holder)).expect("every live record has a name").0.clone()
    }

    fn with_code(&self, code: &str) -> Vec<String> {
        let has =
            |record: &Record| !record.deleted && record.versions.last().is_some_and(|last| last == code);
        self.records.iter().filter(|(_, record)| has(record)).map(|(fqdn, _)| fqdn.clone()).collect()
    }

    fn rename(&mut self, fqdn: &str, to: &str) {
        let from = self.current_name(fqdn);
        self.names.insert(from, Holder::Alias(fqdn.to_owned()));
        self.names.insert(to.to_owned(), Holder::Name(fqdn.to_owned()));
    }

    fn is_free_for(&self, name: &str, fqdn: Option<&str>) -> bool {
        match self.names.get(name) {
            None => true,
            Some(Holder::Reserved) => false,
            Some(Holder::Name(holder) | Holder::Alias(holder)) => Some(holder.as_str()) == fqdn,
        }
    }

    fn add(&mut self, fqdn: &str, name: String, code: String) {
        let fresh = Record { versions: vec![code], tags: vec![None], deleted: false };
        assert!(self.records.insert(fqdn.to_owned(), fresh).is_none(), "{fqdn} was given twice");
        self.names.insert(name, Holder::Name(fqdn.to_owned()));
    }

    /// Does the step in the database and in the model, and compares what comes of it.
    fn take(&mut self, db: &mut Client, step: &Step) {
        match step {
            Step::Register { name: number, code: code_number } => {
                let (wanted, code) = (number.map(name), code(*code_number));
                let result = attempt(db, "SELECT pml_register($1, $2)", &[&code, &wanted]);
                let same = self.with_code(&code);
                let unnamed = |model: &Model, fqdn: &String| model.current_name(fqdn).starts_with("unnamed_");
                match &wanted {
                    _ if same.is_empty() => match wanted {
                        Some(name) if !self.is_free_for(&name, None) => {
                            assert_eq!(result, Err("PM003".into()));
                        }
                        Some(name) => self.add(&result.expect("a free name"), name, code),
                        None => {
                            let fqdn = result.expect("no name, no clash");
                            let name = attempt(db, "SELECT display_name FROM pml_lookup($1)", &[&fqdn])
                                .expect("its name");
                            self.add(&fqdn, name, code);
                        }
                    },
                    None => assert!(same.contains(&result.expect("known code"))),
                    Some(name) => match result {
                        // One of those that have the code: it had this name, or none and now has it.
                        Ok(fqdn) => {
                            assert!(same.contains(&fqdn));
                            if self.current_name(&fqdn) != *name {
                                assert!(unnamed(self, &fqdn) && self.is_free_for(name, Some(&fqdn)));
                                self.rename(&fqdn, name);
                            }
                        }
                        Err(code) => {
                            assert_eq!(code, "PM003");
                            assert!(same.iter().all(|fqdn| self.current_name(fqdn) != *name));
                        }
                    },
                }
            }
            Step::Update { name: number, code: code_number, tagged } => {
                let (name, code) = (name(*number), code(*code_number));
                let tag = tagged.then(|| {
                    self.tags += 1;
                    format!("v{}.{}.0", 50 + self.tags % 7, self.tags)
                });
                let result = attempt(db, "SELECT pml_update($1, $2, $3)::text", &[&name, &code, &tag]);
                let Some(fqdn) = self.target(&name) else { return assert_eq!(result, Err("PM001".into())) };
                let record = self.records.get_mut(&fqdn).expect("a known record");
                if record.versions.last() != Some(&code) || tag.is_some() {
                    record.versions.push(code);
                    record.tags.push(tag);
                }
                assert_eq!(result, Ok(record.versions.len().to_string()));
            }
            Step::Rename { from, to } => {
                let (from, to) = (name(*from), name(*to));
                let result = attempt(db, "SELECT pml_rename($1, $2)", &[&from, &to]);
                let Some(fqdn) = self.target(&from) else { return assert_eq!(result, Err("PM001".into())) };
                if !self.is_free_for(&to, Some(&fqdn)) {
                    return assert_eq!(result, Err("PM003".into()));
                }
                assert_eq!(result, Ok(fqdn.clone()));
                if self.current_name(&fqdn) != to {
                    self.rename(&fqdn, &to);
                }
            }
            Step::Release { name: number } => {
                let name = name(*number);
                let result = attempt(db, "SELECT pml_release_alias($1)::text", &[&name]);
                if matches!(self.names.get(&name), Some(Holder::Alias(_))) {
                    result.expect("an alias");
                    self.names.remove(&name);
                } else {
                    assert_eq!(result, Err("PM001".into()));
                }
            }
            Step::Delete { name: number } => {
                let name = name(*number);
                let result = attempt(db, "SELECT pml_delete($1)", &[&name]);
                let Some(fqdn) = self.target(&name) else { return assert_eq!(result, Err("PM001".into())) };
                assert_eq!(result, Ok(fqdn.clone()));
                self.records.get_mut(&fqdn).expect("a known record").deleted = true;
                for holder in self.names.values_mut() {
                    if matches!(holder, Holder::Name(held) | Holder::Alias(held) if *held == fqdn) {
                        *holder = Holder::Reserved;
                    }
                }
            }
            Step::Fork { from, to } => {
                let (from, to) = (name(*from), name(*to));
                let result = attempt(db, "SELECT pml_fork($1, $2)", &[&from, &to]);
                let Some(source) = self.target(&from) else { return assert_eq!(result, Err("PM001".into())) };
                if !self.is_free_for(&to, None) {
                    return assert_eq!(result, Err("PM003".into()));
                }
                let code = self.records[&source].versions.last().expect("a version").clone();
                self.add(&result.expect("a fork"), to, code);
            }
            Step::Rollback { name: number, version } => {
                let name = name(*number);
                let result = attempt(db, "SELECT pml_rollback($1)::text", &[&format!("{name}@v{version}")]);
                let Some(fqdn) = self.target(&name) else { return assert_eq!(result, Err("PM001".into())) };
                let record = self.records.get_mut(&fqdn).expect("a known record");
                let Some(old) = record.versions.get(version - 1).cloned() else {
                    return assert_eq!(result, Err("PM002".into()));
                };
                if record.versions.last() != Some(&old) {
                    record.versions.push(old);
                    record.tags.push(None);
                }
                assert_eq!(result, Ok(record.versions.len().to_string()));
            }
        }
    }

    /// Every name, alias, FQDN, version and tag ever handed out, each resolved in one go, and the code of each version.
    fn check(&self, db: &mut Client) {
        let mut expected: Vec<(String, Option<(String, usize)>)> = Vec::new();
        let mut codes = BTreeMap::new();
        let resolved =
            |fqdn: &String, version: usize| (!self.records[fqdn].deleted).then(|| (fqdn.clone(), version));
        for name in self.names.keys() {
            let target = self.target(name);
            let newest = target.and_then(|fqdn| resolved(&fqdn, self.records[&fqdn].versions.len()));
            expected.push((name.clone(), newest));
        }
        for (fqdn, record) in &self.records {
            for (index, (code, tag)) in record.versions.iter().zip(&record.tags).enumerate() {
                let version = index + 1;
                expected.push((format!("{fqdn}@v{version}"), resolved(fqdn, version)));
                if let Some(tag) = tag {
                    expected.push((format!("{fqdn}@{tag}"), resolved(fqdn, version)));
                }
                codes.insert((fqdn.clone(), version), code.clone());
            }
            expected.push((fqdn.clone(), resolved(fqdn, record.versions.len())));
        }
        let (there, gone): (Vec<_>, Vec<_>) = expected.iter().partition(|(_, wanted)| wanted.is_some());
        let specs: Vec<&str> = there.iter().map(|(spec, _)| spec.as_str()).collect();
        let rows = db.query(RESOLVE, &[&specs]).unwrap_or_else(|error| panic!("{specs:?}: {error:?}"));
        assert_eq!(rows.len(), there.len());
        for (row, (spec, wanted)) in rows.iter().zip(there) {
            let (fqdn, version) = wanted.as_ref().expect("one that is there");
            let found: (&str, &str, &str) = (row.get(0), row.get(1), row.get(2));
            assert_eq!(found, (fqdn.as_str(), fqdn.as_str(), version.to_string().as_str()), "{spec}");
        }
        let specs: Vec<&str> = gone.iter().map(|(spec, _)| spec.as_str()).collect();
        assert_eq!(
            db.query_one("SELECT still_there($1)", &[&specs]).unwrap().get::<_, Vec<String>>(0),
            [""; 0]
        );
        let stored: BTreeMap<(String, usize), String> = db
            .query("SELECT capability_fqdn, version, code_snippet FROM pml.capability_versions", &[])
            .unwrap()
            .iter()
            .filter(|row| row.get::<_, Option<&str>>(2).is_some())
            .map(|row| ((row.get(0), row.get::<_, i32>(1) as usize), row.get(2)))
            .collect();
        assert_eq!(stored, codes);
    }

    /// What pml_code shows of every version; it parses the code each time, too dear for every step.
    fn check_code(&self, db: &mut Client) {
        for (fqdn, record) in self.records.iter().filter(|(_, record)| !record.deleted) {
            for (index, code) in record.versions.iter().enumerate() {
                let shown = attempt(db, "SELECT pml_code($1)", &[&format!("{fqdn}@v{}", index + 1)]);
                assert_eq!(shown.as_ref(), Ok(code), "{fqdn}@v{}", index + 1);
            }
        }
    }
}

/// One query for all that are there, so that a check after each step is affordable.
const RESOLVE: &str = "SELECT pml_resolve(spec), located.fqdn, located.version::text
  FROM unnest($1::text[]) WITH ORDINALITY AS given (spec, place), pml_internal.pml_locate(spec) AS located ORDER BY place";

/// Those of the specs that resolve, none of which should.
const STILL_THERE: &str = "
CREATE FUNCTION still_there(specs text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  spec text;
  found text[] := '{}';
BEGIN
  FOREACH spec IN ARRAY specs LOOP
    BEGIN
      found := found || format('%s is %s', spec, pml_resolve(spec));
    EXCEPTION WHEN SQLSTATE 'PM001' OR SQLSTATE 'PM002' THEN
      NULL;
    END;
  END LOOP;
  RETURN found;
END $$";

/// Checking a walk costs the square of its length, so that a long one is split.
const LONGEST_WALK: usize = 450;

#[test]
fn what_was_handed_out_always_resolves() {
    let steps: usize =
        std::env::var("PML_WALK_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(4500);
    let cases = steps.div_ceil(LONGEST_WALK);
    let config = Config {
        cases: u32::try_from(cases).expect("a number of walks"),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let walk = proptest::collection::vec(step(), steps / cases);
    TestRunner::new(config)
        .run(&walk, |walk| {
            let database = Database::new();
            let mut connections: Vec<Client> = (0..3).map(|_| database.connect()).collect();
            connections[0].batch_execute(STILL_THERE).unwrap();
            for connection in &mut connections {
                connection.batch_execute("SET client_min_messages = error").unwrap();
            }
            let mut model = Model::default();
            for (number, step) in walk.iter().enumerate() {
                model.take(&mut connections[number % 3], step);
                model.check(&mut connections[(number + 1) % 3]);
            }
            model.check_code(&mut connections[0]);
            Ok(())
        })
        .unwrap();
}
