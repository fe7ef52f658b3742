//! Which groups were active recently. Remembering two is enough to tell whether a group is alone. Pure.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a group counts as active after its last slot: an agent's next call comes within it.
const LATELY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Present {
    last: Option<(Arc<str>, Instant)>,
    /// The latest of any other group.
    before: Option<(Arc<str>, Instant)>,
}

impl Present {
    pub(super) fn seen(&mut self, group: &Arc<str>, now: Instant) {
        if self.last.as_ref().is_some_and(|(last, _)| last != group) {
            self.before = self.last.take();
        }
        self.last = Some((group.clone(), now));
    }

    /// Whether any other group was seen recently.
    pub(super) fn others(&self, group: &Arc<str>, now: Instant) -> bool {
        let other = self.last.as_ref().filter(|(last, _)| last != group).or(self.before.as_ref());
        other.is_some_and(|(_, at)| now.saturating_duration_since(*at) < LATELY)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Instant};

    use super::{LATELY, Present};

    #[test]
    fn the_others_are_those_that_were_seen_lately() {
        let (mut present, start) = (Present::default(), Instant::now());
        let [a, b, c] = ["a", "b", "c"].map(Arc::<str>::from);
        assert!(!present.others(&a, start));
        present.seen(&a, start);
        assert!(!present.others(&a, start) && present.others(&b, start));
        present.seen(&b, start + LATELY / 2);
        for at in [start + LATELY / 2, start + LATELY] {
            present.seen(&a, at);
            assert!(present.others(&a, at) && present.others(&c, at));
        }
        present.seen(&a, start + LATELY * 2);
        assert!(!present.others(&a, start + LATELY * 2), "b has gone");
        assert!(present.others(&b, start + LATELY * 2));
    }
}
