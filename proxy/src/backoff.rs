//! Exponential back-off for all retries of the proxy.

use std::time::Duration;

use backon::ExponentialBuilder;

/// Endless pauses that double from `first` up to `longest`. The jitter makes each 50 to 100 % of that, so that callers that
/// failed together don't retry together.
pub(crate) const fn pauses(first: Duration, longest: Duration) -> ExponentialBuilder {
    ExponentialBuilder::new()
        .with_min_delay(half(first))
        .with_max_delay(half(longest))
        // Adds 0 to 100 %.
        .with_jitter()
        .without_max_times()
}

const fn half(time: Duration) -> Duration {
    Duration::from_nanos(time.as_nanos() as u64 / 2)
}

/// For what must reach Postgres, however long it takes.
pub(crate) const UNTIL_TAKEN: ExponentialBuilder = pauses(Duration::from_millis(100), Duration::from_secs(5));

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use backon::BackoffBuilder;

    use super::pauses;

    #[test]
    fn pauses_double_up_to_the_longest_and_never_end() {
        let mut pauses = pauses(Duration::from_secs(1), Duration::from_secs(10)).build();
        for most in [1, 2, 4, 8, 10, 10] {
            let pause = pauses.next().unwrap().as_secs_f64();
            assert!(
                (f64::from(most) / 2.0 * 0.99..=f64::from(most) * 1.01).contains(&pause),
                "{pause} of {most}"
            );
        }
        assert!(pauses.take(1000).all(|pause| pause <= Duration::from_millis(10_100)));
    }
}
