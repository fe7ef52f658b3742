//! Runs the compiler on a stack of its own: the caller's may be nearly used up, and a stack overflow would end the whole server.

/// Lazily committed; sized so that [`super::depth::MAX_DEPTH`] levels fit even in an unoptimised build.
const STACK_BYTES: usize = 64 * 1024 * 1024;

pub(crate) fn on_own_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::grow(STACK_BYTES, work)
}
