//! The rules of PML, free of I/O: what a name is, what a version specifier means, what makes two pieces of code the same.

#![forbid(unsafe_code)]

pub mod compile;
