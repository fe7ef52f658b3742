//! Approximate timeouts that share one timer, because a timer for each call would wake a thread for each.

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// A timer that runs only while there are waiters.
pub(super) struct Ticks {
    length: Duration,
    tick: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: usize,
    is_ticking: bool,
}

impl Ticks {
    pub(super) fn new(length: Duration) -> Arc<Ticks> {
        Arc::new(Ticks { length, tick: Notify::new(), state: Mutex::default() })
    }

    /// Waits for one to two ticks.
    pub(super) async fn one(self: &Arc<Self>) {
        let _waiting = Waiter::begin(self);
        // The first tick may come at once.
        self.tick.notified().await;
        self.tick.notified().await;
    }

    async fn go_on(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.length).await;
            self.tick.notify_waiters();
            let mut state = self.lock();
            if state.waiting == 0 {
                state.is_ticking = false;
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

struct Waiter<'a>(&'a Ticks);

impl Waiter<'_> {
    fn begin(ticks: &Arc<Ticks>) -> Waiter<'_> {
        let mut state = ticks.lock();
        state.waiting += 1;
        if !state.is_ticking {
            state.is_ticking = true;
            tokio::spawn(Arc::clone(ticks).go_on());
        }
        Waiter(ticks)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep, timeout};

    use super::Ticks;

    #[tokio::test(start_paused = true)]
    async fn a_tick_lasts_one_to_two_lengths() {
        let length = Duration::from_millis(50);
        let ticks = Ticks::new(length);
        for offset in [0, 1, 49, 20, 7] {
            sleep(Duration::from_millis(offset)).await;
            let begun = Instant::now();
            ticks.one().await;
            assert!((length..=length * 2).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        }
        sleep(length * 2).await;
        assert!(!ticks.lock().is_ticking);
    }

    #[tokio::test(start_paused = true)]
    async fn the_timer_stops_without_waiters() {
        let ticks = Ticks::new(Duration::from_millis(50));
        assert!(timeout(Duration::from_millis(10), ticks.one()).await.is_err());
        assert_eq!(ticks.lock().waiting, 0);
        sleep(Duration::from_millis(100)).await;
        assert!(!ticks.lock().is_ticking);
    }
}
