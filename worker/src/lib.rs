//! Runs untrusted JavaScript in confined processes that can do nothing but compute and ask their parent.
//!
//! A [`Pool`] keeps processes ready. [`Pool::run`] gives one of them a piece of code, answers the calls that the code
//! makes with a [`CallHandler`], and comes back with the one [`Outcome`] that the run has. Dropping the future cancels
//! the run.

mod call;
mod clock;
mod fair;
mod json;
mod large;
mod limits;
mod memory;
mod meter;
mod outcome;
mod pool;
#[doc(hidden)]
pub mod protocol;

pub use call::{Call, CallError, CallHandler, CallKind};
pub use clock::{Clock, Pause};
pub use fair::{Counts, FairGate, Full, FullOf, Permit, Refused, Shares, Tenant};
pub use json::Json;
pub use large::aside_if_large;
pub use limits::{LimitKind, Limits};
pub use memory::return_free_memory;
pub use meter::CpuMeter;
pub use outcome::{
    Answer, CallRecord, Failure, LogEntry, LogLevel, MissedCall, Outcome, QueueSetting, Thrown, Trace,
    TraceEvent, Unawaited, Usage,
};
pub use pool::{Layer, Pool, PoolConfig, Run, StartError};

/// Compiles the Rust in the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../docs/worker.md")]
struct Documentation;
