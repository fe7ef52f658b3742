//! Makes sure there is enough stack: the caller's may be nearly used up, and an overflow would crash the whole server.

use super::depth::MAX_DEPTH;

/// The most that one level of nesting needs in the parser, the visitors or the drop; unoptimised frames are larger.
const BYTES_PER_LEVEL: usize = if cfg!(debug_assertions) { 128 * 1024 } else { 24 * 1024 };
/// What code without any nesting needs.
const BASE_BYTES: usize = 256 * 1024;

/// Runs on the caller's stack if `levels` of nesting fit there, else on a new one, which costs some 10 µs.
pub(crate) fn with_stack_for<T>(levels: usize, work: impl FnOnce() -> T) -> T {
    let bytes = |levels: usize| BASE_BYTES + levels * BYTES_PER_LEVEL;
    stacker::maybe_grow(bytes(levels), bytes(MAX_DEPTH), work)
}
