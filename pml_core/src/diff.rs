//! What changed between two versions of a capability, as a unified diff.

use std::time::{Duration, Instant};

use similar::{Algorithm, TextDiff};

/// An exact diff of two unrelated long texts takes quadratic time; past this the diff is coarser, not wrong.
const EFFORT: Duration = Duration::from_millis(500);

/// The unified diff from `old` to `new`, empty when they are the same.
pub fn unified(old: &str, new: &str, old_label: &str, new_label: &str) -> String {
    if old == new {
        return String::new();
    }
    TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .deadline(Instant::now() + EFFORT)
        .diff_lines(old, new)
        .unified_diff()
        .context_radius(3)
        .header(old_label, new_label)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn only_the_change_and_its_surroundings() {
        let diff = unified("a\nb\nc\n", "a\nB\nc\n", "v1", "v2");
        assert_eq!(diff, "--- v1\n+++ v2\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
    }

    #[test]
    fn no_change_no_diff() {
        assert_eq!(unified("a", "a", "v1", "v2"), "");
    }

    #[test]
    fn a_missing_last_newline_is_said() {
        assert!(unified("a\n", "a", "v1", "v2").contains("No newline at end of file"));
    }
}
