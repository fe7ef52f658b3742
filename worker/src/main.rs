//! `pml-worker`: the process that runs untrusted code. The pool starts it as `pml-worker serve`; `pml-worker doors` shows
//! what the sandbox blocks.

mod confine;
mod guest;
mod session;

use std::process::ExitCode;

use pml_worker::protocol::FromWorker;

use crate::confine::{
    Layer, Plan, confine,
    doors::{self, Found},
};

const USAGE: &str = "\
pml-worker runs sandboxed JavaScript for a pool that starts it.

usage: pml-worker doors [options]     try every way out of the sandbox on this kernel and say what happened
       pml-worker serve [options]     serve runs on standard input, which must be the pool's socket

options:
  --memory-ceiling BYTES       the most that a run's heap may ever be (default 268435456)
  --allow-missing LAYER        work on a kernel without LAYER: landlock or seccomp
  --pretend-missing LAYER      leave LAYER out, to see what the others hold
";

/// Exit code for wrong usage (`EX_USAGE` of sysexits.h).
const BAD_USAGE: u8 = 64;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let command = arguments.first().map(String::as_str);
    let (name, options) = match command {
        Some("door") => (arguments.get(1).map(String::as_str), arguments.get(2..)),
        _ => (None, arguments.get(1..)),
    };
    let plan = match parse(options.unwrap_or_default()) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("pml-worker: {error}\n\n{USAGE}");
            return ExitCode::from(BAD_USAGE);
        }
    };
    match (command, name) {
        (Some("serve"), _) => serve(&plan),
        (Some("doors"), _) => show_doors(options.unwrap_or_default(), &plan),
        (Some("door"), Some(name)) => doors::attempt(name, &plan),
        (Some("help" | "--help" | "-h"), _) => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        (Some("version" | "--version" | "-V"), _) => {
            println!("pml-worker {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(BAD_USAGE)
        }
    }
}

fn parse(options: &[String]) -> Result<Plan, String> {
    let mut plan = Plan { memory_ceiling: 256 * 1024 * 1024, ..Plan::default() };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let value = options.next().ok_or_else(|| format!("{option} needs a value"))?;
        let layer = || {
            Layer::from_name(value).ok_or_else(|| format!("{option} takes landlock or seccomp, not {value}"))
        };
        match option.as_str() {
            "--memory-ceiling" => {
                plan.memory_ceiling =
                    value.parse().map_err(|_| format!("{option} takes bytes, not {value}"))?;
            }
            "--allow-missing" => plan.allow_missing.push(layer()?),
            "--pretend-missing" => plan.pretend_missing.push(layer()?),
            _ => return Err(format!("there is no option {option}")),
        }
    }
    Ok(plan)
}

fn serve(plan: &Plan) -> ExitCode {
    if session::begin().is_err() {
        eprintln!(
            "pml-worker: standard input isn't a pool's socket; `pml-worker help` says what can be run by hand"
        );
        return ExitCode::from(BAD_USAGE);
    }
    match confine(plan) {
        Ok(missing) => {
            let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
            // Ends when the parent closes the socket; that is the normal end.
            match guest::serve(&missing.join(", ")) {
                Ok(()) | Err(_) => ExitCode::SUCCESS,
            }
        }
        Err(error) => {
            let _ = guest::tell(&FromWorker::Refused { why: &error.to_string() });
            ExitCode::FAILURE
        }
    }
}

fn show_doors(options: &[String], plan: &Plan) -> ExitCode {
    let mut open = 0;
    for (name, held_by_landlock, _) in doors::DOORS {
        let layers = match (plan.pretend_missing.contains(&Layer::Seccomp), held_by_landlock) {
            (true, false) => " (only seccomp shuts it)",
            _ => "",
        };
        match doors::try_door(name, options) {
            Ok(Found::Shut(how)) => println!("shut  {name}: {how}"),
            Ok(Found::Open) => {
                open += 1;
                println!("OPEN  {name}{layers}");
            }
            Ok(Found::Unknown(status)) => {
                open += 1;
                println!("?     {name}: {status}");
            }
            Err(error) => {
                open += 1;
                println!("?     {name}: {error}");
            }
        }
    }
    if open == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
