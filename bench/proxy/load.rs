//! Calls made one after the other, and by many clients at once.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::{Address, Client, Result};

/// What is asked, again and again.
#[derive(Clone)]
pub(crate) struct Question {
    pub(crate) method: &'static str,
    pub(crate) params: Value,
}

#[derive(Default)]
pub(crate) struct Load {
    /// Of each call, in microseconds.
    pub(crate) latencies: Vec<f64>,
    pub(crate) per_second: f64,
}

impl Load {
    pub(crate) fn p50(&self) -> f64 {
        percentile(&self.latencies, 50)
    }

    pub(crate) fn p99(&self) -> f64 {
        percentile(&self.latencies, 99)
    }
}

pub(crate) fn percentile(times: &[f64], percent: usize) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(f64::NAN)
}

pub(crate) fn median(times: &[f64]) -> f64 {
    percentile(times, 50)
}

/// How far the values lie apart, in percent of their median.
pub(crate) fn spread(values: &[f64]) -> f64 {
    let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(l, m), v| (l.min(*v), m.max(*v)));
    (most - least) / median(values) * 100.0
}

pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// One client, for a time.
pub(crate) async fn one(client: &mut Client, question: &Question, time: Duration) -> Result<Load> {
    let begun = Instant::now();
    let mut latencies = Vec::new();
    while begun.elapsed() < time {
        let asked = Instant::now();
        let answer = client.request(question.method, &question.params).await?;
        if answer.result["isError"] == true {
            return Err(answer.result.to_string());
        }
        latencies.push(micros(answer.at - asked));
    }
    let per_second = latencies.len() as f64 / begun.elapsed().as_secs_f64();
    Ok(Load { latencies, per_second })
}

/// Connects so many clients.
pub(crate) async fn connect(http: &reqwest::Client, address: &Address, count: usize) -> Result<Vec<Client>> {
    futures_util::future::try_join_all((0..count).map(|_| Client::connect(http, address))).await
}

/// All of them at once, each one call at a time.
pub(crate) async fn many(clients: &mut [Client], question: &Question, time: Duration) -> Result<Load> {
    let begun = Instant::now();
    let loads = clients.iter_mut().map(|client| one(client, question, time));
    let loads = futures_util::future::try_join_all(loads).await?;
    let latencies: Vec<f64> = loads.into_iter().flat_map(|load| load.latencies).collect();
    let per_second = latencies.len() as f64 / begun.elapsed().as_secs_f64();
    Ok(Load { latencies, per_second })
}
