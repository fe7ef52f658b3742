//! Memory that the allocator keeps.

/// Returns what the allocator has free to the kernel. Takes milliseconds in a process with much of it.
pub fn return_free_memory() {
    // SAFETY: malloc_trim takes no pointer.
    unsafe { libc::malloc_trim(0) };
}
