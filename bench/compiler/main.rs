//! Measures the compiler in one run against its limits: the bare SWC parse of the same text, growth by ten, the worst
//! inputs found, and Babel and SWC under Node doing the same transformation. Exits with an error where a limit is missed.

mod worst;

use std::collections::HashMap;
use std::process::Command;
use std::time::{Duration, Instant};

use pml_core::compile::{CompileOptions, MAX_CODE_BYTES, compile, references};
use swc_common::BytePos;
use swc_ecma_ast::EsVersion;
use swc_ecma_parser::{Lexer, Parser, StringInput, Syntax, TsSyntax};

const SAMPLE: &str = include_str!("sample.ts");

fn bare_parse(code: &str) {
    assert!(parse_only(code), "the text to measure must parse");
}

fn parse_only(code: &str) -> bool {
    let input = StringInput::new(code, BytePos(1), BytePos(1 + code.len() as u32));
    let lexer = Lexer::new(Syntax::Typescript(TsSyntax::default()), EsVersion::latest(), input, None);
    let mut parser = Parser::new_from(lexer);
    parser.parse_module().is_ok()
}

/// The shortest of many runs, which is what the machine can do when nothing else disturbs it.
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

/// The sample several times over, each in a function of its own.
fn repeated(times: usize) -> String {
    let body = SAMPLE;
    (0..times).map(|i| format!("async function part{i}(args: any) {{\n{body}}}\n")).collect()
}

fn with_references(count: usize) -> String {
    (0..count).map(|i| format!("await mcp.ns{}.act{i}({{ n: {i} }});\n", i % 7)).collect()
}

/// `repeat parse|compile|references <times> <size>` does one thing only, for tools that count instructions.
fn repeat(what: &str, times: usize, size: usize) {
    let options = CompileOptions::default();
    let code = match (what, size) {
        ("references", size) => with_references(size),
        (_, 1) => SAMPLE.to_owned(),
        (_, size) => repeated(size),
    };
    for _ in 0..times {
        match what {
            "parse" => bare_parse(&code),
            _ => drop(compile(&code, &options).expect("compiles")),
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, what, numbers @ ..] = &arguments[..]
        && mode == "repeat"
    {
        let number =
            |index: usize| numbers.get(index).map_or(1, |text: &String| text.parse().expect("a number"));
        repeat(what, number(0), number(1));
        return;
    }
    let mut report = Report { missed: false };
    let options = CompileOptions::default();
    let parse = fastest(|| bare_parse(SAMPLE));
    let whole = fastest(|| {
        compile(SAMPLE, &options).expect("compiles");
    });
    println!(
        "sample of {} lines: bare parse {:.0} µs, whole compile {:.0} µs",
        SAMPLE.lines().count(),
        micros(parse),
        micros(whole)
    );
    report.ratio("whole compile / bare parse", micros(whole) / micros(parse), 2.5, true);

    let (one, ten) = (repeated(2), repeated(20));
    let grown = |code: &str| fastest(|| drop(compile(code, &options).expect("compiles")));
    report.ratio("compile, 10 times the code", micros(grown(&ten)) / micros(grown(&one)), 12.0, true);
    let (few, many) = (with_references(300), with_references(3000));
    let found = |code: &str| fastest(|| drop(references(code).expect("parses")));
    report.ratio("references, 10 times as many", micros(found(&many)) / micros(found(&few)), 12.0, true);
    report.ratio(
        "compile, 10 times as many references",
        micros(grown(&many)) / micros(grown(&few)),
        12.0,
        true,
    );

    // The bare parser takes the stack it is given, and the worst inputs are deep.
    let measuring = std::thread::Builder::new().stack_size(256 << 20).spawn(print_worst).expect("a thread");
    measuring.join().expect("no panic");

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/compiler/peers.mjs");
    match Command::new("node").arg(script).output() {
        Ok(output) if output.status.success() => {
            let times: HashMap<String, f64> =
                serde_json::from_slice(&output.stdout).expect("peers.mjs prints times in µs");
            for (peer, time) in &times {
                println!("{peer} under Node: {time:.0} µs");
            }
            report.ratio("Babel / whole compile", times["babel"] / micros(whole), 10.0, false);
            println!("{:<64} {:>8.2}×", "SWC from npm / whole compile", times["swc"] / micros(whole));
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
