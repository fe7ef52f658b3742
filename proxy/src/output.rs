//! Lines on standard output.

use std::{
    fmt::Arguments,
    io::{ErrorKind, Write, stdout},
    process,
};

/// Ends the program if the line can't be written. That nobody reads it, because `head` has seen enough, is no failure.
pub(crate) fn print_line(line: Arguments<'_>) {
    match writeln!(stdout(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("pml: standard output can't be written: {error}");
            process::exit(1);
        }
        _ => {}
    }
}
