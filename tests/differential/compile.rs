//! Compiles the pieces of code in a JSON array on standard input; prints a JSON array of executables, structures or errors.

use std::io::Read;

use pml_compile::{CompileOptions, compile};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input)?;
    let codes: Vec<String> = serde_json::from_str(&input)?;
    let results: Vec<Value> = codes
        .iter()
        .map(|code| match compile(code, &CompileOptions::default()) {
            Ok(compiled) => json!({ "executable": compiled.executable, "structure": compiled.structure }),
            Err(error) => json!({ "error": error.to_string() }),
        })
        .collect();
    println!("{}", serde_json::to_string(&results)?);
    Ok(())
}
