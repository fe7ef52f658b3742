//! Tests that the crate's modules have no cyclic dependencies.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Which modules each module of the crate's root names after `crate::`.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The modules that a source text names, as `crate::name` or in `crate::{name…, name…}`.
fn named(source: &str) -> BTreeSet<String> {
    let code: String = source.lines().map(|line| line.split("//").next().unwrap_or(line)).collect();
    let mut names = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        let mut depth = 0_u32;
        let mut starts_name = true;
        for (at, character) in after.char_indices() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => starts_name = true,
                'A'..='Z' => starts_name = false,
                'a'..='z' if starts_name => {
                    let rest = &after[at..];
                    let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(rest.len());
                    names.insert(rest[..end].to_owned());
                    starts_name = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    names
}

fn read(folder: &Path, module: Option<&str>, uses: &mut Uses) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let module = module.unwrap_or(stem);
        if path.is_dir() {
            read(&path, Some(module), uses);
        } else if !matches!(module, "lib" | "main" | "module_cycles") {
            let mut names = named(&fs::read_to_string(&path).unwrap());
            names.remove(module);
            uses.entry(module.to_owned()).or_default().append(&mut names);
        }
    }
}

/// What is left after removing modules without dependencies, repeatedly.
fn entangled(mut uses: Uses) -> Uses {
    while let Some(leaf) = uses.iter().find(|(_, used)| used.is_empty()).map(|(module, _)| module.clone()) {
        uses.remove(&leaf);
        uses.values_mut().for_each(|used| {
            used.remove(&leaf);
        });
    }
    uses
}

#[test]
fn no_modules_use_each_other_in_a_circle() {
    let mut uses = Uses::new();
    read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), None, &mut uses);
    assert!(uses["run"].contains("app") && uses["app"].contains("tools"), "it reads the sources");
    let entangled = entangled(uses);
    assert!(entangled.is_empty(), "modules that use each other, or something that does: {entangled:#?}");
}

#[test]
fn a_circle_is_seen() {
    let source = "use crate::{\n    b::{C, d},\n    e, // f\n};\nfn g() { crate::h::i(); }\npub(in crate::j) struct K;";
    assert_eq!(named(source), ["b", "e", "h", "j"].map(str::to_owned).into());
    let uses = |module: &str, used: &str| (module.to_owned(), BTreeSet::from([used.to_owned()]));
    let circle =
        Uses::from([uses("a", "b"), uses("b", "a"), uses("c", "a"), ("d".to_owned(), BTreeSet::new())]);
    assert_eq!(entangled(circle).len(), 3);
}
