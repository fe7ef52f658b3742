//! Text with pieces replaced: all that the compiler writes is the source with edits, so that what isn't touched stays to the byte.

/// Replaces `start..end` by `text`. Edits at one place apply in the order they were added.
#[derive(Debug, Clone)]
struct Edit {
    start: usize,
    end: usize,
    text: String,
    order: usize,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Edits {
    list: Vec<Edit>,
}

impl Edits {
    pub(crate) fn replace(&mut self, range: std::ops::Range<usize>, text: impl Into<String>) {
        let order = self.list.len();
        self.list.push(Edit {
            start: range.start,
            end: range.end.max(range.start),
            text: text.into(),
            order,
        });
    }

    pub(crate) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    /// Removes a piece but keeps its line ends, so that the lines after it keep their numbers.
    pub(crate) fn remove(&mut self, code: &str, range: std::ops::Range<usize>) {
        let kept = line_ends(code.get(range.clone()).unwrap_or_default());
        self.replace(range, kept);
    }

    pub(crate) fn append(&mut self, other: &Edits) {
        for edit in &other.list {
            self.replace(edit.start..edit.end, edit.text.clone());
        }
    }

    /// The text with all edits; an edit inside one that was applied before it in the text is dropped.
    pub(crate) fn apply(&self, code: &str) -> String {
        let mut edits: Vec<&Edit> = self.list.iter().collect();
        // At one place, insertions come before the replacement of what follows.
        edits.sort_by_key(|edit| (edit.start, edit.end > edit.start, edit.order));
        let mut result =
            String::with_capacity(code.len() + self.list.iter().map(|edit| edit.text.len()).sum::<usize>());
        let mut at = 0;
        for edit in edits {
            let Some(kept) = code.get(at..edit.start) else { continue };
            result.push_str(kept);
            result.push_str(&edit.text);
            at = edit.end.max(at);
        }
        result.push_str(code.get(at..).unwrap_or_default());
        result
    }
}

/// Only the line ends of a text.
pub(crate) fn line_ends(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_apply_in_the_order_of_the_text() {
        let mut edits = Edits::default();
        edits.replace(4..5, "B");
        edits.insert(0, "<");
        edits.insert(0, "<");
        edits.remove("a\nb c", 1..2);
        assert_eq!(edits.apply("a\nb c"), "<<a\nb B");
    }

    #[test]
    fn an_edit_inside_a_replaced_piece_is_dropped() {
        let mut edits = Edits::default();
        edits.replace(0..4, "X");
        edits.replace(1..2, "Y");
        assert_eq!(edits.apply("abcdef"), "Xef");
    }
}
