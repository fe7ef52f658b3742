//! Lines on standard output.

use std::{
    fmt::Arguments,
    io::{ErrorKind, Write, stdout},
};

/// Like `println!`, but that nobody reads it, because `head` has seen enough, is no failure.
pub(crate) fn print_line(line: Arguments<'_>) {
    match writeln!(stdout(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            panic!("can't write to standard output: {error}")
        }
        _ => {}
    }
}
