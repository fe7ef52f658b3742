//! Lets the caller interrupt a long compile: it passes a callback, which the compiler polls.

use std::cell::RefCell;
use std::rc::Rc;

use super::error::{CompileError, ErrorKind};

thread_local! {
    static QUESTION: RefCell<Option<Rc<dyn Fn() -> bool>>> = const { RefCell::new(None) };
}

/// Runs `work`; every compile in it ends with [`ErrorKind::Interrupted`] soon after `is_interrupted` returns true.
///
/// It is polled before and after each phase and inside those that can be long. The parse can't be interrupted, only bounded
/// by [`MAX_CODE_BYTES`](super::MAX_CODE_BYTES). The callback must return: in a Postgres backend it reads the pending flags
/// (`InterruptPending`), and the caller runs `CHECK_FOR_INTERRUPTS` once it has the error, so that no `longjmp` crosses a
/// Rust frame.
///
/// ```
/// use pml_compile::{ErrorKind, interruptible, references};
/// let error = interruptible(|| true, || references("mcp.fs.read()")).unwrap_err();
/// assert_eq!(error.kind, ErrorKind::Interrupted);
/// ```
pub fn interruptible<T>(is_interrupted: impl Fn() -> bool + 'static, work: impl FnOnce() -> T) -> T {
    // Restored even when `work` panics, so that the callback doesn't affect the next compile.
    struct Before(Option<Rc<dyn Fn() -> bool>>);
    impl Drop for Before {
        fn drop(&mut self) {
            QUESTION.set(self.0.take());
        }
    }
    let _before = Before(QUESTION.replace(Some(Rc::new(is_interrupted))));
    work()
}

/// An error if the caller interrupts the compile.
pub(crate) fn check() -> Result<(), CompileError> {
    let question = QUESTION.with_borrow(Clone::clone);
    if question.is_some_and(|is_interrupted| is_interrupted()) {
        return Err(CompileError {
            kind: ErrorKind::Interrupted,
            line: 1,
            column: 1,
            message: "the compile was interrupted".to_owned(),
            hint: None,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{CompileOptions, MAX_CODE_BYTES, compile, display, infer_parameters, lift_literals};

    thread_local! {
        static ASKED: Cell<usize> = const { Cell::new(0) };
    }

    /// How often a compile polls, if it is never interrupted.
    fn asked(code: &str) -> usize {
        ASKED.set(0);
        let never = || {
            ASKED.set(ASKED.get() + 1);
            false
        };
        interruptible(never, || compile(code, &CompileOptions::default())).expect("compiles");
        ASKED.get()
    }

    #[test]
    fn a_compile_ends_wherever_it_is_interrupted() {
        let code = "for (const x of args.list) { if (x) await mcp.a.b({ x }) } return 1";
        for stop in 1..=asked(code) {
            ASKED.set(0);
            let at_last = move || {
                ASKED.set(ASKED.get() + 1);
                ASKED.get() >= stop
            };
            let error =
                interruptible(at_last, || compile(code, &CompileOptions::default())).expect_err("stops");
            assert_eq!(error.kind, ErrorKind::Interrupted);
            assert_eq!(ASKED.get(), stop, "the callback isn't polled again after it returned true");
        }
    }

    #[test]
    fn large_code_asks_more_often() {
        let unit = "if(a)mcp.a.b();";
        assert!(asked(&unit.repeat(MAX_CODE_BYTES / unit.len())) > asked(unit));
    }

    #[test]
    fn every_way_in_can_be_interrupted() {
        let code = "mcp.a.b(args.x)";
        interruptible(
            || true,
            || {
                assert!(display(code, &Default::default()).is_err());
                assert!(infer_parameters(code).is_err());
                assert!(lift_literals(code).is_err());
                assert!(crate::canonical::code_hash(code).is_err());
            },
        );
    }

    #[test]
    fn the_question_is_forgotten_afterwards() {
        let code = "mcp.a.b()";
        let panicked = std::panic::catch_unwind(|| interruptible(|| true, || panic!("in the middle")));
        assert!(panicked.is_err());
        let inner = || interruptible(|| true, || infer_parameters(code).is_err());
        assert!(interruptible(|| false, || inner() && infer_parameters(code).is_ok()));
        assert!(infer_parameters(code).is_ok());
    }
}
