//! A megabyte of JSON in one direction at a time, and where its time goes.

use std::time::Instant;

use pml_worker::{Call, CallError, Json, Pool, Run};

use super::{generous, median, micros};

const TIMES: usize = 30;

pub(crate) async fn print(pool: &Pool, rows: &Json) {
    println!("\nA megabyte of JSON ({} bytes), in one direction at a time", rows.get().len());
    println!("{:<46} {:>12} {:>12} {:>20}", "", "p50", "fastest", "of it in the worker");
    row(pool, rows, "arguments in", "return args.length").await;
    row(pool, rows, "a tool's result in", "return (await mcp.bench.rows()).length").await;
    row(pool, rows, "arguments in, result out", "return args").await;
    row(pool, rows, "a tool's result in, result out", "return await mcp.bench.rows()").await;
    row(pool, rows, "arguments in, to a tool, its result in", "return (await mcp.bench.echo(args)).length")
        .await;
}

async fn row(pool: &Pool, rows: &Json, what: &str, code: &str) {
    let mut run = Run::new("bench", code).with_limits(generous());
    if code.contains("args") {
        run.args = rows.clone();
    }
    let tools = async |call: Call| -> Result<Json, CallError> {
        Ok(if call.target == "bench:rows" { rows.clone() } else { call.args })
    };
    let (mut whole, mut inside) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let begun = Instant::now();
        let outcome = pool.run(run.clone(), &tools).await;
        whole.push(micros(begun.elapsed()) / 1e3);
        outcome.result.unwrap_or_else(|failure| panic!("{failure}"));
        inside.push(micros(outcome.usage.cpu_time) / 1e3);
    }
    let least = |times: &[f64]| times.iter().copied().fold(f64::MAX, f64::min);
    println!(
        "{what:<46} {:>9.2} ms {:>9.2} ms {:>10.2} ms of CPU",
        median(whole.clone()),
        least(&whole),
        least(&inside)
    );
}
