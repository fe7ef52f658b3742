//! Fair queues: tenants share slots by construction, so that none has to be stopped for another to be served.

mod gate;
mod present;
mod queue;
mod tenant;

pub use gate::{FairGate, Permit, Refused};
pub use queue::{Counts, Full, FullOf, Shares};
pub use tenant::Tenant;
