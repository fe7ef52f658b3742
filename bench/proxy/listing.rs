//! tools/list of scopes with few and many capabilities.

use std::{path::Path, time::Instant};

use serde_json::json;

use super::{
    client::Result,
    load::{median, micros, percentile},
    processes::{memory, pml},
};

const TIMES: usize = 9;

pub(crate) async fn print(http: &reqwest::Client, folder: &Path, counts: &[usize]) -> Result<()> {
    println!("\ntools/list, with the built-in tools");
    println!(
        "{:<14} {:>11} {:>11} {:>12} {:>14} {:>16}",
        "capabilities", "first", "p50", "slowest", "bytes", "pml afterwards"
    );
    for count in counts {
        // bench/proxy/run has filled them.
        let (mut process, address) = pml(folder, "pml", &["--project", &format!("listing_{count}")])?;
        let mut client = process.serves(http, &address).await?;
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..=TIMES {
            let asked = Instant::now();
            let answer = client.request("tools/list", &json!({})).await?;
            times.push(micros(answer.at - asked));
            bytes = answer.bytes;
            let listed = answer.result["tools"].as_array().map_or(0, Vec::len);
            if listed < *count {
                return Err(format!("{listed} tools are listed, not {count}"));
            }
        }
        println!(
            "{count:<14} {:>8.2} ms {:>8.2} ms {:>9.2} ms {bytes:>14} {:>13.1} MB",
            times[0] / 1e3,
            median(&times[1..]) / 1e3,
            percentile(&times[1..], 100) / 1e3,
            memory(process.pid()).0,
        );
    }
    Ok(())
}
