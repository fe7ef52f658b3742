//! The `pml` command.

fn main() {}
