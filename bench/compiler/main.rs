//! Measures the compiler against its limits: the bare SWC parse of the same text, growth by ten, the worst known inputs, and
//! Babel and SWC under Node doing the same transformation. Exits with an error if a limit is missed.

mod worst;

use std::collections::HashMap;
use std::process::Command;
use std::time::{Duration, Instant};

use pml_compile::{CompileOptions, MAX_CODE_BYTES, compile};
use swc_common::BytePos;
use swc_ecma_ast::EsVersion;
use swc_ecma_parser::{Lexer, Parser, StringInput, Syntax, TsSyntax};

/// Capabilities of some 50 lines, as agents write them; the first is also used for growth and for the peers.
const SAMPLES: [(&str, &str); 4] = [
    ("digest", include_str!("samples/digest.ts")),
    ("paginate", include_str!("samples/paginate.ts")),
    ("queue", include_str!("samples/queue.ts")),
    ("report", include_str!("samples/report.ts")),
];
const SAMPLE: &str = SAMPLES[0].1;
/// The generated text that consists of references only.
const REFERENCES: &str = "references";

fn bare_parse(code: &str) {
    assert!(parse_only(code), "the text to measure must parse");
}

fn parse_only(code: &str) -> bool {
    let input = StringInput::new(code, BytePos(1), BytePos(1 + code.len() as u32));
    let lexer = Lexer::new(Syntax::Typescript(TsSyntax::default()), EsVersion::latest(), input, None);
    let mut parser = Parser::new_from(lexer);
    parser.parse_module().is_ok()
}

/// The shortest of many runs, which is the least disturbed by other load.
fn fastest(mut work: impl FnMut()) -> Duration {
    let started = Instant::now();
    let mut best = Duration::MAX;
    let mut runs = 0;
    while runs < 5 || started.elapsed() < Duration::from_millis(700) {
        let run = Instant::now();
        work();
        best = best.min(run.elapsed());
        runs += 1;
    }
    best
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// The unit of comparison: instructions if valgrind is installed, since their number doesn't depend on other load.
enum Cost {
    Instructions,
    Time,
}

impl Cost {
    fn found() -> Self {
        let counts =
            Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success());
        if counts { Self::Instructions } else { Self::Time }
    }

    fn unit(&self) -> &'static str {
        match self {
            Self::Instructions => "instructions, counted by valgrind",
            Self::Time => "times: valgrind, which counts instructions, isn't there",
        }
    }

    /// The cost of one run on a text of this size.
    fn of(&self, work: &str, text: &str, size: usize) -> f64 {
        match self {
            Self::Instructions => {
                (instructions(work, text, size, 8) - instructions(work, text, size, 4)) / 4.0
            }
            Self::Time => {
                let code = text_of_size(text, size);
                micros(fastest(|| once(work, &code)))
            }
        }
    }
}

/// How many instructions this program executes for `times` runs.
fn instructions(work: &str, text: &str, size: usize, times: usize) -> f64 {
    let this = std::env::current_exe().expect("this program has a path");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .args(["repeat", work, text, &size.to_string(), &times.to_string()])
        .output()
        .expect("valgrind runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let counted = said.rsplit("Collected :").next().and_then(|rest| rest.split_whitespace().next());
    counted
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("valgrind counted nothing: {said}"))
}

struct Report {
    missed: bool,
}

impl Report {
    fn ratio(&mut self, what: &str, ratio: f64, limit: f64, at_most: bool) {
        let holds = if at_most { ratio <= limit } else { ratio >= limit };
        self.missed |= !holds;
        let (sign, verdict) = (if at_most { "≤" } else { "≥" }, if holds { "ok" } else { "MISSED" });
        println!("{what:<64} {ratio:>8.2}×  ({sign} {limit}×) {verdict}");
    }
}

/// The sample repeated, each copy in its own function.
fn repeated(sample: &str, times: usize) -> String {
    (0..times).map(|i| format!("async function part{i}(args: any) {{\n{sample}}}\n")).collect()
}

fn with_references(count: usize) -> String {
    (0..count).map(|i| format!("await mcp.ns{}.act{i}({{ n: {i} }});\n", i % 7)).collect()
}

fn text_of_size(text: &str, size: usize) -> String {
    match (SAMPLES.iter().find(|(name, _)| *name == text), size) {
        (Some((_, sample)), 1) => (*sample).to_owned(),
        (Some((_, sample)), size) => repeated(sample, size),
        (None, size) => with_references(size),
    }
}

fn once(work: &str, code: &str) {
    match work {
        "parse" => bare_parse(code),
        _ => drop(compile(code, &CompileOptions::default()).expect("compiles")),
    }
}

fn main() {
    // `repeat parse|compile <text> <size> <times>`: the mode in which valgrind runs this program.
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, work, text, size, times] = &arguments[..]
        && mode == "repeat"
    {
        let code = text_of_size(text, size.parse().expect("a size"));
        (0..times.parse().expect("a number of times")).for_each(|_| once(work, &code));
        return;
    }
    let mut report = Report { missed: false };
    let options = CompileOptions::default();
    let parse = fastest(|| bare_parse(SAMPLE));
    let whole = fastest(|| drop(compile(SAMPLE, &options).expect("compiles")));
    let (lines, parse, whole) = (SAMPLE.lines().count(), micros(parse), micros(whole));
    println!(
        "sample of {lines} lines: bare parse {parse:.0} µs, whole compile {whole:.0} µs, {:.2}×",
        whole / parse
    );
    let cost = Cost::found();
    println!("ratios are of {}", cost.unit());
    for (name, _) in SAMPLES {
        let ratio = cost.of("compile", name, 1) / cost.of("parse", name, 1);
        report.ratio(&format!("whole compile / bare parse, {name}.ts"), ratio, 2.5, true);
    }
    for (text, base, title) in [(SAMPLES[0].0, 2, "the code"), (REFERENCES, 300, "the references")] {
        let first = cost.of("compile", text, base);
        let growth: Vec<f64> =
            [2, 5, 10].iter().map(|times| cost.of("compile", text, base * times) / first).collect();
        println!("2 and 5 times {title}: {:.2}× and {:.2}×", growth[0], growth[1]);
        report.ratio(&format!("compile, 10 times {title}"), growth[2], 12.0, true);
    }

    // The bare parser doesn't grow its stack, and the worst inputs are deep.
    let measuring = std::thread::Builder::new().stack_size(256 << 20).spawn(print_worst).expect("a thread");
    measuring.join().expect("no panic");

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers.mjs");
    match Command::new("node").arg(script).output() {
        Ok(output) if output.status.success() => {
            let times: HashMap<String, f64> =
                serde_json::from_slice(&output.stdout).expect("peers.mjs prints times in µs");
            for (peer, time) in &times {
                println!("{peer} under Node: {time:.0} µs");
            }
            report.ratio("Babel / whole compile", times["babel"] / whole, 10.0, false);
            println!("{:<64} {:>8.2}×", "SWC from npm / whole compile", times["swc"] / whole);
        }
        other => {
            println!("peers not measured: {other:?} (run `npm ci` in bench/compiler)");
            report.missed = true;
        }
    }
    std::process::exit(i32::from(report.missed));
}

fn print_worst() {
    let mut worst = Vec::new();
    for (name, code) in worst::inputs() {
        assert!(code.len() <= MAX_CODE_BYTES, "{name} is too long");
        let started = Instant::now();
        parse_only(&code);
        let parse = started.elapsed();
        let started = Instant::now();
        let outcome = compile(&code, &CompileOptions::default());
        let whole = started.elapsed();
        worst.push((
            whole,
            parse,
            name,
            outcome.map_or_else(|error| error.to_string(), |_| "compiled".to_owned()),
        ));
    }
    worst.sort();
    println!("the worst inputs of {} KiB:", MAX_CODE_BYTES / 1024);
    for (whole, parse, name, outcome) in worst.iter().rev() {
        let [whole, parse] = [whole, parse].map(|duration| micros(*duration) / 1e3);
        println!("  {name:<40} {whole:>8.1} ms, bare parse {parse:>8.1} ms  {outcome}");
    }
}
