//! The proxy against its peers, all in one run: `bench/proxy/run`, which has a database for it and installs the peers.
//!
//! Prints figures; asserts nothing. The client is on the same machine and takes its share of the cores.

mod capability;
mod client;
mod echoes;
mod fairness;
mod listing;
mod load;
mod passed_through;
mod processes;
mod proxies;
mod tokens;

use std::{env, path::PathBuf, time::Duration};

use client::Result;

pub(crate) fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        // What the fairness section starts beside the proxy.
        ["asking-server"] => return fairness::asking_server::serve(),
        ["attack", name, url] => return done(fairness::attack::attack(name, url).await),
        _ => {}
    }
    let seconds = env::var("PML_BENCH_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let time = Duration::from_secs_f64(seconds);
    let Some(folder) = env::var_os("PML_BENCH_FOLDER").map(PathBuf::from) else {
        eprintln!("Start it with bench/proxy/run, which makes a database for it.");
        std::process::exit(64);
    };
    // No proxy of the environment between us and this machine.
    let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build().expect("an HTTP client");
    let wanted: Vec<String> = args.into_iter().filter(|word| !word.starts_with('-')).collect();
    let wants = |section: &str| wanted.is_empty() || wanted.iter().any(|word| word == section);
    if wants("passed_through") {
        done(passed_through::print(&http, &folder, time).await);
    }
    if wants("capability") {
        done(capability::print(&http, &folder, time).await);
    }
    if wants("echoes") {
        done(echoes::print(&http, &folder, time).await);
    }
    if wants("proxies") {
        done(proxies::print(&http, &folder, time).await);
    }
    if wants("listing") {
        done(listing::print(&http, &folder, &[10, 1_000, 10_000]).await);
        done(listing::beside_others(&http, &folder, time).await);
    }
    if wants("fairness") {
        done(fairness::print(&http, &folder, time, &wanted).await);
    }
    if wants("tokens") {
        done(tokens::print(&http, &folder).await);
    }
}

/// One section that fails doesn't hide the others.
fn done(section: Result<()>) {
    if let Err(error) = section {
        println!("This can't be measured: {error}");
    }
}
