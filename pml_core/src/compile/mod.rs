//! The compiler: from an agent's TypeScript to everything the registry keeps about it.

mod depth;
mod error;
mod parse;
mod stack;

pub use depth::MAX_DEPTH;
pub use error::{CompileError, ErrorKind, line_and_column};
pub use parse::MAX_CODE_BYTES;
pub(crate) use parse::{offset, parse};
pub(crate) use stack::on_own_stack;
