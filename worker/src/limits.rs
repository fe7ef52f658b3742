//! Resource limits of a run, with defaults that suit an agent's tool call.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

const MIB: u64 = 1024 * 1024;

/// Limits of one run. Every field can be set per run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// From the start of the code to its result, waiting for tools included. Default 30 s.
    pub wall_time: Duration,
    /// CPU time. Default 5 s.
    pub cpu_time: Duration,
    /// The engine's heap, in bytes. Default 64 MiB.
    pub memory: u64,
    /// The engine's stack, in bytes. Default 512 KiB, at most 4 MiB.
    pub stack: u64,
    /// All that the run sends out, in bytes of JSON: its result and the arguments of its calls. Default 16 MiB.
    pub output: u64,
    /// Text written to `console`, in bytes. Default 256 KiB.
    pub logs: u64,
    /// Calls of tools and capabilities. Default 1,000.
    pub calls: u64,
    /// Calls that wait for an answer at the same time. Default 100.
    pub calls_in_flight: u64,
    /// Visits and decisions kept in the trace; those past it are counted, not kept. Default 10,000.
    pub trace_events: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            wall_time: Duration::from_secs(30),
            cpu_time: Duration::from_secs(5),
            memory: 64 * MIB,
            stack: 512 * 1024,
            output: 16 * MIB,
            logs: 256 * 1024,
            calls: 1_000,
            calls_in_flight: 100,
            trace_events: 10_000,
        }
    }
}

/// The smallest heap in which a runtime and its prelude fit.
const SMALLEST_MEMORY: u64 = MIB;
const SMALLEST_STACK: u64 = 64 * 1024;
const LARGEST_STACK: u64 = 4 * MIB;

impl Limits {
    /// Validates these limits for a pool whose processes may use `memory_ceiling` bytes.
    pub(crate) fn check(&self, memory_ceiling: u64) -> Result<(), String> {
        let in_range = |limit: LimitKind, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                Err(format!("the limit {limit} is {value}, but must be from {least} to {most}"))
            }
        };
        in_range(LimitKind::Memory, self.memory, SMALLEST_MEMORY, memory_ceiling)?;
        in_range(LimitKind::Stack, self.stack, SMALLEST_STACK, LARGEST_STACK)?;
        // A frame's length is 32 bits; half of that leaves room for everything around the JSON.
        in_range(LimitKind::Output, self.output, 0, u64::from(u32::MAX / 2))?;
        in_range(LimitKind::Logs, self.logs, 0, u64::from(u32::MAX / 2))?;
        in_range(LimitKind::TraceEvents, self.trace_events, 0, 10_000_000)?;
        for (limit, time) in [(LimitKind::WallTime, self.wall_time), (LimitKind::CpuTime, self.cpu_time)] {
            if time.is_zero() || time > Duration::from_secs(24 * 3600) {
                return Err(format!(
                    "the limit {limit} is {time:?}, but must be above 0 and at most 24 hours"
                ));
            }
        }
        Ok(())
    }

    /// The value of one of them, as an error shows it.
    pub(crate) fn describe(&self, limit: LimitKind) -> String {
        match limit {
            LimitKind::WallTime => format!("{:?}", self.wall_time),
            LimitKind::CpuTime => format!("{:?}", self.cpu_time),
            LimitKind::Memory => format!("{} bytes", self.memory),
            LimitKind::Stack => format!("{} bytes", self.stack),
            LimitKind::Output => format!("{} bytes", self.output),
            LimitKind::Logs => format!("{} bytes", self.logs),
            LimitKind::Calls => format!("{} calls", self.calls),
            LimitKind::CallsInFlight => format!("{} calls at once", self.calls_in_flight),
            LimitKind::TraceEvents => format!("{} events", self.trace_events),
        }
    }
}

/// Which limit a run reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is a field of Limits")]
pub enum LimitKind {
    WallTime,
    CpuTime,
    Memory,
    Stack,
    Output,
    Logs,
    Calls,
    CallsInFlight,
    TraceEvents,
}

impl LimitKind {
    /// What the author of the code can do about it.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            LimitKind::WallTime => "do less in one run, or call slow tools in parallel with Promise.all",
            LimitKind::CpuTime => "look for an endless loop, or leave heavy computing to a tool",
            LimitKind::Memory => "keep less data at once, for example page by page",
            LimitKind::Stack => "look for endless recursion, or use a loop",
            LimitKind::Output => "return a summary, or a part of the data",
            LimitKind::Logs => "log less, or return the data instead",
            LimitKind::Calls => "use a tool that takes many items in one call",
            LimitKind::CallsInFlight => "call in smaller batches",
            LimitKind::TraceEvents => "loop less",
        }
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LimitKind::WallTime => "wall_time",
            LimitKind::CpuTime => "cpu_time",
            LimitKind::Memory => "memory",
            LimitKind::Stack => "stack",
            LimitKind::Output => "output",
            LimitKind::Logs => "logs",
            LimitKind::Calls => "calls",
            LimitKind::CallsInFlight => "calls_in_flight",
            LimitKind::TraceEvents => "trace_events",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Limits, MIB};

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(Limits::default().check(256 * MIB), Ok(()));
    }

    #[test]
    fn a_bad_limit_is_named_with_its_value() {
        let error = Limits { memory: 512 * MIB, ..Limits::default() }.check(256 * MIB).unwrap_err();
        assert_eq!(error, "the limit memory is 536870912, but must be from 1048576 to 268435456");
        let error = Limits { wall_time: Duration::ZERO, ..Limits::default() }.check(256 * MIB).unwrap_err();
        assert!(error.starts_with("the limit wall_time is 0ns"), "{error}");
        assert!(Limits { stack: 64 * MIB, ..Limits::default() }.check(256 * MIB).is_err());
    }
}
