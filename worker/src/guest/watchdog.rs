//! Kernel timers that kill the process if the engine doesn't stop by itself, even without a parent.

use std::time::Duration;

use pml_worker::Limits;

/// Grace period for the engine to report a limit. The parent's own is shorter than `WALL_GRACE`.
const CPU_GRACE: Duration = Duration::from_millis(250);
const WALL_GRACE: Duration = Duration::from_secs(2);

pub(crate) struct Watchdog;

impl Watchdog {
    pub(crate) fn start(limits: &Limits) -> Watchdog {
        set(libc::ITIMER_PROF, limits.cpu_time + CPU_GRACE);
        set(libc::ITIMER_REAL, limits.wall_time + WALL_GRACE);
        Watchdog
    }

    /// Pauses the wall time; CPU time always counts.
    pub(crate) fn pause() {
        set(libc::ITIMER_REAL, Duration::ZERO);
    }

    pub(crate) fn resume(left: Duration) {
        set(libc::ITIMER_REAL, left + WALL_GRACE);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        set(libc::ITIMER_PROF, Duration::ZERO);
        set(libc::ITIMER_REAL, Duration::ZERO);
    }
}

fn set(timer: libc::c_int, after: Duration) {
    let once = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval {
            tv_sec: after.as_secs().cast_signed(),
            tv_usec: after.subsec_micros().into(),
        },
    };
    // SAFETY: both pointers are valid or null; the signals' default action ends the process.
    unsafe { libc::setitimer(timer, &raw const once, std::ptr::null_mut()) };
}
