//! Measures the compiler in one run against its limits: the bare SWC parse of the same text, growth by ten, the worst
//! inputs found, and Babel and SWC under Node doing the same transformation. Exits with an error where a limit is missed.

use std::collections::HashMap;
use std::process::Command;
use std::time::{Duration, Instant};

use pml_core::compile::{CompileOptions, MAX_CODE_BYTES, compile, references};
use swc_common::BytePos;
use swc_ecma_ast::EsVersion;
use swc_ecma_parser::{Lexer, Parser, StringInput, Syntax, TsSyntax};

const SAMPLE: &str = include_str!("sample.ts");

fn bare_parse(code: &str) {
    let input = StringInput::new(code, BytePos(1), BytePos(1 + code.len() as u32));
    let lexer = Lexer::new(Syntax::Typescript(TsSyntax::default()), EsVersion::latest(), input, None);
    let mut parser = Parser::new_from(lexer);
    let module = parser.parse_module();
    assert!(module.is_ok(), "the text to measure must parse");
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

/// Text that costs the parser or the compiler the most per byte, as large as is allowed.
fn worst_inputs() -> HashMap<&'static str, String> {
    let fill = |unit: &str| unit.repeat(MAX_CODE_BYTES / unit.len());
    HashMap::from([
        ("open angles", fill(&format!("x={}a;", "a<".repeat(15)))),
        ("assertions", fill(&format!("x={}a;", "<T>".repeat(40)))),
        ("arrows", fill(&format!("x={}a;", "(a)=>".repeat(90)))),
        ("conditional arrows", fill(&format!("x={}a{};", "a?(a)=>(".repeat(40), "):c".repeat(40)))),
        ("parentheses", fill(&format!("x={}a{};", "(".repeat(180), ")".repeat(180)))),
        ("calls", fill("mcp.a.b();")),
        ("calls on one line in functions", fill("function f(mcp){mcp.a.b()}")),
        ("decisions", fill("if(a)mcp.a.b();")),
        ("objects", fill(&format!("x={}1{};", "{a:".repeat(90), "}".repeat(90)))),
        ("aliases", fill("{const m=mcp;m.a.b()};")),
        ("labels", fill(&format!("{}x;", (0..150).map(|i| format!("a{i}:")).collect::<String>()))),
        ("cases", format!("switch(x){{{}}}", "case 1:mcp.a.b();".repeat((MAX_CODE_BYTES - 16) / 17))),
    ])
}

/// `repeat parse|compile <times>` does one thing only, for tools that count instructions.
fn repeat(what: &str, times: usize) {
    let options = CompileOptions::default();
    for _ in 0..times {
        match what {
            "parse" => bare_parse(SAMPLE),
            _ => drop(compile(SAMPLE, &options).expect("compiles")),
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, what, times] = &arguments[..]
        && mode == "repeat"
    {
        repeat(what, times.parse().expect("a number of times"));
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

    let mut worst: Vec<_> = worst_inputs()
        .into_iter()
        .map(|(name, code)| {
            let started = Instant::now();
            let outcome = compile(&code, &options);
            (
                started.elapsed(),
                name,
                outcome.err().map_or_else(|| "compiled".to_owned(), |error| error.message),
            )
        })
        .collect();
    worst.sort();
    println!("the worst inputs of {} KiB:", MAX_CODE_BYTES / 1024);
    for (time, name, outcome) in worst.iter().rev() {
        println!("  {name:<32} {:>8.1} ms  {outcome}", micros(*time) / 1e3);
    }

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
