//! Fair queues: tenants share slots by construction, so that none can starve another.

mod gate;
mod present;
mod queue;
mod tenant;

pub use gate::{FairGate, Permit, Refused};
pub use queue::{Counts, Full, FullOf, Shares};
pub use tenant::Tenant;
