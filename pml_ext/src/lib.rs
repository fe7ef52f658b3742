//! The Postgres extension `pml`: thin SQL functions over `pml_core`.

pgrx::pg_module_magic!();
