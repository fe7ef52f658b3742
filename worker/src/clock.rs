//! A deadline that can be paused, for example while a person is asked.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Counts down from a limit unless it is paused. Clones share the clock.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    changed: Notify,
    /// The clock of the enclosing run.
    around: Option<Clock>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// Time left at `since`, or for as long as it is paused.
    left: Duration,
    since: Instant,
    pauses: usize,
}

impl State {
    fn left(&self) -> Duration {
        if self.pauses > 0 { self.left } else { self.left.saturating_sub(self.since.elapsed()) }
    }
}

/// Pauses the clock until dropped.
#[derive(Debug)]
pub struct Pause(Clock);

impl Clock {
    /// Starts counting now.
    pub fn new(limit: Duration) -> Clock {
        Clock::start(limit, None)
    }

    /// A clock for a nested run: pausing it pauses this one too.
    #[must_use]
    pub fn part(&self, limit: Duration) -> Clock {
        Clock::start(limit, Some(self.clone()))
    }

    fn start(limit: Duration, around: Option<Clock>) -> Clock {
        let state = Mutex::new(State { left: limit, since: Instant::now(), pauses: 0 });
        Clock(Arc::new(Inner { state, changed: Notify::new(), around }))
    }

    /// Starts counting down from `limit` again.
    pub fn restart(&self, limit: Duration) {
        self.change(|state| (state.left, state.since) = (limit, Instant::now()));
    }

    /// How much time is left.
    pub fn left(&self) -> Duration {
        self.state().left()
    }

    /// Whether it is paused.
    pub fn is_paused(&self) -> bool {
        self.pauses() > 0
    }

    /// How many pauses are held.
    pub(crate) fn pauses(&self) -> usize {
        self.state().pauses
    }

    /// Pauses it and the clocks of enclosing runs until the guard is dropped.
    #[must_use]
    pub fn pause(&self) -> Pause {
        let mut clock = Some(self);
        while let Some(paused) = clock {
            paused.change(|state| {
                state.left = state.left();
                state.pauses += 1;
            });
            clock = paused.0.around.as_ref();
        }
        Pause(self.clone())
    }

    /// Waits until no time is left.
    pub async fn ran_out(&self) {
        loop {
            let changed = self.changed();
            if self.is_paused() {
                changed.await;
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(self.left()) => return,
                () = changed => {}
            }
        }
    }

    /// Waits for the next pause or resume after this call.
    pub fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.0.changed.notified()
    }

    fn resume(&self) {
        let mut clock = Some(self);
        while let Some(resumed) = clock {
            resumed.change(|state| {
                state.pauses -= 1;
                state.since = Instant::now();
            });
            clock = resumed.0.around.as_ref();
        }
    }

    fn state(&self) -> State {
        *self.0.state.lock()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.state.lock());
        self.0.changed.notify_waiters();
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.0.resume();
    }
}

#[cfg(test)]
mod tests {
    use std::{thread::sleep, time::Duration};

    use super::Clock;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "there is no runtime")]
    fn it_stands_still_as_long_as_anybody_paused_it() {
        let clock = Clock::new(Duration::from_secs(100));
        let pauses = [clock.pause(), clock.pause()];
        let left = clock.left();
        for pause in pauses {
            assert!(clock.is_paused());
            sleep(Duration::from_millis(2));
            assert_eq!(clock.left(), left);
            drop(pause);
        }
        sleep(Duration::from_millis(2));
        assert!(clock.left() < left);
    }

    #[test]
    fn a_part_pauses_the_whole_and_not_the_other_way_round() {
        let whole = Clock::new(Duration::from_secs(100));
        let part = whole.part(Duration::from_secs(10)).part(Duration::from_secs(1));
        let pause = part.pause();
        assert!(whole.is_paused());
        drop(pause);
        assert!(!whole.is_paused());
        let _pause = whole.pause();
        assert!(!part.is_paused());
    }

    #[tokio::test]
    async fn it_runs_out_only_after_the_pause() {
        let clock = Clock::new(Duration::from_millis(20));
        let pause = clock.pause();
        let ran_out = tokio::spawn({
            let clock = clock.clone();
            async move { clock.ran_out().await }
        });
        tokio::time::sleep(Duration::from_millis(60)).await;
        assert!(!ran_out.is_finished());
        drop(pause);
        ran_out.await.unwrap();
    }
}
