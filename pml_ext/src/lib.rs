//! The Postgres extension `pml`: thin SQL functions over `pml_core` and `pml_compile`, and `pml_resolve`, the one hot path.

mod arguments;
mod caller;
mod code;
mod compile;
mod error;
mod gate;
mod names;
mod outcome;
mod records;
mod resolve;
mod restore;
mod scan;
mod scope;
mod settings;
mod unseen;

use pgrx::pg_guard;

pgrx::pg_module_magic!();

#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    error::without_backtraces();
    settings::define();
    gate::install();
    scan::install();
}
