//! Regression test: runs every input of the corpus through its fuzz target.

// Public for the fuzzers, which are another crate.
#[allow(unreachable_pub, dead_code)]
#[path = "../targets.rs"]
mod targets;

use std::path::Path;

fn run_kept(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz").join(name);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is there") {
        let path = entry.expect("a file").path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
            continue;
        }
        println!("{}", path.display());
        target(&std::fs::read(&path).expect("readable"));
        count += 1;
    }
    assert!(count >= 10, "only {count} inputs in {}", folder.display());
}

/// An oracle that accepts nothing would never disagree.
#[test]
fn the_oracle_takes_most_of_the_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/differential/corpus");
    let files: Vec<_> = std::fs::read_dir(folder).expect("the corpus is there").flatten().collect();
    let codes = files.iter().map(|file| std::fs::read_to_string(file.path()).expect("readable"));
    let erased = codes.filter(|code| targets::oracle::erased(code).is_some()).count();
    assert!(erased * 10 >= files.len() * 8, "{erased} of {}", files.len());
}

#[test]
fn kept_inputs_are_specifiers() {
    run_kept("corpus/spec", targets::spec_target);
}

#[test]
fn kept_inputs_link() {
    run_kept("corpus/link", targets::link_target);
}

#[test]
fn kept_inputs_compile() {
    run_kept("corpus/compile", targets::compile_target);
    run_kept("../tests/differential/corpus", targets::compile_target);
}

#[test]
fn kept_inputs_are_not_too_deep() {
    run_kept("corpus/depth", targets::depth_target);
}
