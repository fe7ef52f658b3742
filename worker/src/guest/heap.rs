//! The engine's heap: the C allocator with a ceiling, its peak, and whether the ceiling was hit.

use std::{cell::Cell, rc::Rc};

use rquickjs::allocator::Allocator;

/// What the heap of one runtime holds and may hold, in bytes.
#[derive(Default)]
pub(crate) struct HeapGauge {
    used: Cell<usize>,
    peak: Cell<usize>,
    limit: Cell<usize>,
    exhausted: Cell<bool>,
}

impl HeapGauge {
    pub(crate) fn unlimited() -> Rc<HeapGauge> {
        Rc::new(HeapGauge { limit: Cell::new(usize::MAX), ..HeapGauge::default() })
    }

    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit.set(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak.get() as u64
    }

    /// Whether an allocation was ever refused.
    pub(crate) fn exhausted(&self) -> bool {
        self.exhausted.get()
    }

    fn admits(&self, more: usize) -> bool {
        let fits = self.used.get().checked_add(more).is_some_and(|total| total <= self.limit.get());
        if !fits {
            self.exhausted.set(true);
        }
        fits
    }

    fn add(&self, bytes: usize) {
        let used = self.used.get().saturating_add(bytes);
        self.used.set(used);
        self.peak.set(self.peak.get().max(used));
    }

    fn remove(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }
}

/// The allocator that QuickJS is given.
pub(crate) struct Heap(pub(crate) Rc<HeapGauge>);

impl Heap {
    fn account(&self, block: *mut libc::c_void) -> *mut u8 {
        if block.is_null() {
            // The kernel's own ceiling (RLIMIT_AS) counts as ours.
            self.0.exhausted.set(true);
        } else {
            // SAFETY: the block came from malloc just now.
            self.0.add(unsafe { libc::malloc_usable_size(block) });
        }
        block.cast()
    }
}

// SAFETY: every block comes from malloc, calloc or realloc, which align for any type, and usable_size asks the same malloc.
unsafe impl Allocator for Heap {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.0.admits(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: malloc takes any size.
        self.account(unsafe { libc::malloc(size) })
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let Some(total) = count.checked_mul(size) else { return std::ptr::null_mut() };
        if !self.0.admits(total) {
            return std::ptr::null_mut();
        }
        // SAFETY: calloc takes any size.
        self.account(unsafe { libc::calloc(count, size) })
    }

    unsafe fn dealloc(&mut self, block: *mut u8) {
        let block = block.cast();
        // SAFETY: the engine gives back only blocks that came from here.
        unsafe {
            self.0.remove(libc::malloc_usable_size(block));
            libc::free(block);
        }
    }

    unsafe fn realloc(&mut self, block: *mut u8, new_size: usize) -> *mut u8 {
        let block: *mut libc::c_void = block.cast();
        // SAFETY: the block is null or came from here; malloc_usable_size takes null.
        let old_size = unsafe { libc::malloc_usable_size(block) };
        if new_size > old_size && !self.0.admits(new_size - old_size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above; a failed realloc leaves the block as it was.
        let moved = unsafe { libc::realloc(block, new_size) };
        if moved.is_null() && new_size > 0 {
            self.0.exhausted.set(true);
            return std::ptr::null_mut();
        }
        self.0.remove(old_size);
        if moved.is_null() { moved.cast() } else { self.account(moved) }
    }

    unsafe fn usable_size(block: *mut u8) -> usize {
        // SAFETY: the block came from here.
        unsafe { libc::malloc_usable_size(block.cast()) }
    }
}
