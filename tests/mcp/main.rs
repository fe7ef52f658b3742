//! The proxy as its clients see it: real processes, the real protocol, a database for each test.

mod advertised;
mod changes;
mod commands;
mod execute;
mod fairness;
mod floods;
mod forwarded;
mod front_door;
mod hints;
mod listing;
mod no_fqdns;
mod outages;
mod passed_on;
mod passthrough;
mod pooler;
mod prompts;
mod questions;
mod request_ids;
mod resources;
mod safety;
mod servers;
mod stdio;
mod strict_http;
mod subscriptions;
mod tls;
mod unawaited;
