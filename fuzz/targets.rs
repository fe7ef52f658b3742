//! Properties that must hold for any input: the fuzzers look for counterexamples, and pml_compile's tests run the corpus.

use std::collections::HashMap;

use pml_compile::canonical::code_hash;
use pml_compile::{
    CompileOptions, Lookup, Source, compile, display, lift_literals, link, references, without_types,
};
use pml_core::fqdn::Fqdn;
use pml_core::name::check_name;
use pml_core::spec::{Spec, Target};

pub mod oracle;

const FQDN: &str = "local.default.fs.read_json.a7f3";

/// Aborts when our own code panics. Panics of the parser are caught and reported as syntax errors, and those of the oracle
/// aren't findings.
pub fn abort_on_our_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            if !panic.location().is_some_and(|place| place.file().contains("/swc_")) {
                eprintln!("{panic}");
                std::process::abort();
            }
        }));
    });
}

fn lookup() -> Lookup {
    HashMap::from([("fs:read_json".to_owned(), FQDN.to_owned())])
}

/// A parsed specifier round-trips, and its parts are valid.
pub fn spec_target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(spec) = Spec::parse(&text) else { return };
    assert!(text.starts_with(spec.target_text), "the target is what it starts with");
    match spec.target {
        Target::Name(name) => check_name(name).expect("a valid name"),
        Target::Scoped { org, project, name } => {
            check_name(name).expect("a valid name");
            assert_eq!(format!("{org}.{project}:{name}"), spec.target_text);
        }
        Target::Fqdn(fqdn) => {
            assert_eq!(Fqdn::parse(&fqdn.to_string()).expect("a valid FQDN"), fqdn);
            assert_eq!(fqdn.to_string(), spec.target_text);
        }
        Target::Unhashed { org, project, namespace, action } => {
            assert_eq!(format!("{org}.{project}.{namespace}.{action}"), spec.target_text);
        }
    }
    let again = format!("{}@{}", spec.target_text, spec.version_text);
    assert_eq!(Spec::parse(&again).expect("what was read can be read again").version, spec.version);
}

/// Linking is idempotent, and displayed code links back to the same code.
pub fn link_target(data: &[u8]) {
    let code = String::from_utf8_lossy(data);
    let Ok(found) = references(&code) else { return };
    for reference in &found.found {
        assert!(
            code.get(reference.start..reference.end).is_some(),
            "a reference lies on the code's characters"
        );
    }
    let once = link(&code, &lookup()).expect("what parses can be linked");
    assert_eq!(link(&once, &lookup()).expect("what was linked parses"), once);
    let hash = Source::parse(&code).expect("it parsed before").linked_hash(&lookup());
    assert_eq!(hash, code_hash(&once).expect("what was linked parses"), "{once}");
    let names = HashMap::from([(FQDN.to_owned(), "fs:read_json".to_owned())]);
    let shown = display(&once, &names).expect("what was linked can be displayed");
    assert_eq!(link(&shown, &lookup()).expect("what was displayed parses"), once);
}

/// Compiled code keeps its lines, refers only to existing nodes, and is accepted by the engine. Erasable code compiles, to the
/// same program that the other stripper produces.
pub fn compile_target(data: &[u8]) {
    let code = String::from_utf8_lossy(data);
    let options = CompileOptions { lookup: lookup(), ..CompileOptions::default() };
    let compiled = match compile(&code, &options) {
        Ok(compiled) => compiled,
        Err(error) => {
            let is_wrong = !oracle::is_known_refusal(&code, &error)
                && oracle::erased(&code).is_some_and(|erased| oracle::engine_refusal(&erased).is_none());
            assert!(!is_wrong, "{error}, though the code can be erased");
            return;
        }
    };
    let stripped = without_types(&code).expect("what compiles can be stripped");
    if let Some(erased) = oracle::erased(&code) {
        assert!(oracle::same_program(&stripped, &erased), "ours: {stripped}\ntheirs: {erased}");
        assert_words_stay_in_their_lines(&code, &stripped);
    }
    let ids: Vec<&str> = compiled.structure.nodes.iter().map(pml_compile::Node::id).collect();
    for edge in &compiled.structure.edges {
        assert!(ids.contains(&&*edge.from) && ids.contains(&&*edge.to), "an edge joins two nodes");
    }
    let unlinked = compile(&code, &CompileOptions::default()).expect("it compiled before").executable;
    assert_probes_stay_in_their_lines(&stripped, &unlinked);
    assert_eq!(lines(&compiled.executable).len(), lines(&code).len(), "{}", compiled.executable);
    let refusal = oracle::engine_refusal(&compiled.executable);
    assert_eq!(refusal, None, "{}", compiled.executable);
    lift_literals(&code).expect("what compiles can be lifted");
}

fn lines(text: &str) -> Vec<String> {
    let text = text.replace("\r\n", "\n");
    text.split(['\n', '\r', '\u{2028}', '\u{2029}']).map(str::to_owned).collect()
}

/// Stripping removes words but never moves one to another line, so that errors have the author's line numbers.
fn assert_words_stay_in_their_lines(code: &str, stripped: &str) {
    let (code, stripped) = (lines(code), lines(stripped));
    assert_eq!(code.len(), stripped.len(), "as many lines: {stripped:?}");
    for (line, left) in code.iter().zip(&stripped) {
        let of_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let mut before = line.split(|c| !of_word(c));
        let mut after = left.split(|c| !of_word(c)).filter(|word| !word.is_empty());
        assert!(after.all(|word| before.any(|other| other == word)), "{line} became {left}");
    }
}

/// A probe is on the line of what it reports.
fn assert_probes_stay_in_their_lines(stripped: &str, executable: &str) {
    let (stripped, executable) = (lines(stripped), lines(executable));
    assert_eq!(stripped.len(), executable.len(), "as many lines: {executable:?}");
    for (line, probed) in stripped.iter().zip(&executable) {
        let mut probed_chars = probed.chars();
        assert!(line.chars().all(|c| probed_chars.any(|other| other == c)), "{line} became {probed}");
    }
}

/// Fragments for the depth target: constructs in which the parser backtracks, and what they can contain.
const FRAGMENTS: &str = concat!(
    "¦a¦a?¦(b)¦:¦=>¦async¦<T>¦<¦>¦(¦{¦[¦a<¦get\n¦set\n¦infer a extends ¦type x=¦as ¦for(¦var in ¦var of ¦",
    "function(){¦class{¦-1,¦new ¦ extends ¦switch(a){case¦`${¦typeof ¦keyof ¦export ¦namespace a¦declare ¦abstract ¦",
    " is ¦asserts ¦readonly ¦...¦?.¦!¦=¦,¦;¦\n¦+¦ in ¦return ¦yield ¦await ¦do ¦if(a)¦@a ¦static¦accessor ¦super¦",
    "import(¦?¦()¦a:¦x=¦0¦'s'¦&¦let ",
);

/// Any text, repeated and closed, is handled in bounded time and stack.
pub fn depth_target(data: &[u8]) {
    let fragments: Vec<&str> = FRAGMENTS.split('¦').collect();
    let pick = |picks: &[u8]| -> String {
        picks.iter().map(|pick| fragments[*pick as usize % fragments.len()]).collect()
    };
    let (start, unit) = match data {
        [0xFF, first, second, picks @ ..] => (pick(&[*first, *second]), pick(picks)),
        text => (String::new(), String::from_utf8_lossy(text).into_owned()),
    };
    let closers: String = unit
        .chars()
        .rev()
        .filter_map(|c| match c {
            '(' => Some(')'),
            '[' => Some(']'),
            '{' => Some('}'),
            _ => None,
        })
        .collect();
    // 2⁴⁰ steps would never end; two thousand levels would overflow the stack.
    for times in [40, 2000] {
        if unit.len() * times > 200_000 {
            return;
        }
        for (middle, end) in [("", ""), ("a", &*closers), ("a:a", &*format!("{closers}:a"))] {
            let code = format!("{start}{}{middle}{}", unit.repeat(times), end.repeat(times));
            let _ = compile(&code, &CompileOptions::default());
        }
    }
}
