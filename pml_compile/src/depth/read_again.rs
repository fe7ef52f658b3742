//! Bounds the parser's backtracking. Where it can't tell types or a function from something else it tries one, and if that
//! fails parses the same text again: nested tries take exponential time, and a parse can't be interrupted. So each place where
//! `swc_ecma_parser` backtracks (`try_parse_ts`, `ts_look_ahead`) has its factor here.

use super::bytes::{BLANK, is};
use super::{Prev, Scanner};
use crate::error::{CompileError, ErrorKind};

/// How many bytes may be parsed, backtracking included: about half a second's worth.
const MAX_READ: usize = 8 * 1024 * 1024;

/// How often the content of one bracket may be parsed, and what was seen there that adds to it.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    /// For the bracket as a whole, and for the current expression.
    whole: usize,
    times: usize,
    is_annotated: bool,
    is_infer: bool,
}

impl Reading {
    pub(super) fn new(times: usize) -> Self {
        Self { whole: times, times, is_annotated: false, is_infer: false }
    }

    pub(super) fn end_expression(&mut self) {
        *self = Self::new(self.whole);
    }

    /// `a ? (b) : c => d`: whether `c` is a return type is known only after the function's body.
    pub(super) fn behind_arrow(&mut self) {
        if std::mem::take(&mut self.is_annotated) {
            self.read_twice();
        }
    }

    fn read_twice(&mut self) {
        self.times = self.times.saturating_mul(2);
    }
}

impl Scanner<'_> {
    pub(super) fn check_read_again(&self) -> Result<(), CompileError> {
        let times = self.frame.reading.times;
        if times == 1 || times.saturating_mul(self.bytes.len()) <= MAX_READ {
            return Ok(());
        }
        Err(self.refuse(
            self.at,
            ErrorKind::TooComplex,
            "types and brackets are nested too deeply here",
            "give the inner types names of their own, or put inner expressions into variables",
        ))
    }

    /// How often the content of a bracket that opens here may be parsed.
    pub(super) fn times_read_inside(&self, open: u8) -> usize {
        // `a<{`: three tries of type arguments, then a comparison.
        let in_angles = if self.frame.angles > 0 { 4 } else { 1 };
        // `a<T>(`: a call with type arguments, or two comparisons.
        let behind_types = if self.prev == Prev::Greater { 2 } else { 1 };
        // `case (a): {`: a return type, or not. After an operand, only `[` can belong to a type.
        let may_be_type = open == b'[' || !(self.is_behind_operand() || self.prev == Prev::CloseBrace);
        let in_annotation = if self.frame.reading.is_annotated && may_be_type { 2 } else { 1 };
        self.frame.reading.times.saturating_mul(in_angles * behind_types * in_annotation)
    }

    pub(super) fn read_again_behind_colon(&mut self) {
        self.frame.reading.is_annotated |= self.prev == Prev::CloseParen;
    }

    /// `<T>a` is first parsed as a generic function, with the whole assignment or conditional after it; so is `async<T>`.
    pub(super) fn read_again_behind_angle(&mut self) {
        let is_comparison = matches!(self.prev, Prev::Operand | Prev::Contextual | Prev::CloseParen);
        if !is_comparison && !self.is_behind_binary_operator() {
            self.frame.reading.read_twice();
        }
    }

    /// Call this with the scanner after a keyword.
    pub(super) fn read_again_behind_word(&mut self, start: usize) {
        let may_start_member = self.frame.open == b'{'
            && !matches!(self.prev, Prev::Operator | Prev::OperatorWord | Prev::Question | Prev::Colon);
        let reading = &mut self.frame.reading;
        match &self.code[start..self.at] {
            // A getter in a type, or a member of that name and the next one.
            "get" | "set" if may_start_member => {
                reading.times = reading.times.max(reading.whole.saturating_mul(2));
            }
            "infer" => reading.is_infer = true,
            // `infer A extends B ? C : D`: the `extends` may be a constraint of `A` or start a conditional type.
            "extends" if std::mem::take(&mut reading.is_infer) => reading.read_twice(),
            // `for (var in a)`: a missing name, or one called `in`.
            "in" | "of" if matches!(self.prev, Prev::OperatorWord | Prev::Ambiguous) => reading.read_twice(),
            _ => {}
        }
    }

    pub(super) fn is_behind_operand(&self) -> bool {
        matches!(self.prev, Prev::Operand | Prev::Contextual | Prev::Async | Prev::CloseParen | Prev::Greater)
    }

    /// Whether the last operator certainly can't be followed by an assignment or arrow function.
    fn is_behind_binary_operator(&self) -> bool {
        let before = self.bytes[..self.at].iter().rev().find(|byte| !is(**byte, BLANK));
        self.prev == Prev::Operator && before.is_some_and(|byte| b"+-*%^&|<".contains(byte))
    }
}
