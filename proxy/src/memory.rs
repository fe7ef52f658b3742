//! Returns memory to the system when the process rests: the allocator would keep what a large list or many calls at once took.

use std::{mem, sync::Arc, time::Duration};

use pml_worker::{aside_if_large, return_free_memory};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::tools::Catalog;

const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A process that uses more CPU time between two looks is working.
const WORK: Duration = Duration::from_millis(20);

pub(crate) async fn return_at_rest(tools: Arc<Catalog>, stop: CancellationToken) {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut work = Work::default();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = looks.tick() => {}
        }
        let is_over = work.is_over(cpu_time());
        if tools.cache.pack_lists() || is_over {
            aside_if_large(usize::MAX, return_free_memory);
        }
    }
}

/// Whether the process has worked since its memory was returned.
#[derive(Default)]
struct Work {
    used: Duration,
    was_seen: bool,
}

impl Work {
    /// Whether there was work, and none since the last look. `used` is the CPU time of the process.
    fn is_over(&mut self, used: Duration) -> bool {
        let before = mem::replace(&mut self.used, used);
        if used.saturating_sub(before) > WORK {
            self.was_seen = true;
            return false;
        }
        mem::take(&mut self.was_seen)
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Work;

    #[test]
    fn memory_is_returned_once_after_work() {
        let mut work = Work::default();
        let at = [0, 5, 100, 101, 300, 302, 304, 310].map(Duration::from_millis);
        let over = at.map(|used| work.is_over(used));
        assert_eq!(over, [false, false, false, true, false, true, false, false]);
    }
}
