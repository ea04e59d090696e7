//! Pauses between tries to connect to a peer: longer with every one in a row that came to nothing, whoever it was made for.

use crate::time;
use std::time::Duration;
use steadfast_kernel::{Jitter, Policy};
use tokio::time::Instant;

/// The pause after the first failure is shorter than that, and the bound doubles with every other.
const FIRST: Duration = Duration::from_millis(50);

/// No pause is longer, unless the other side asks for it.
const LONGEST: Duration = Duration::from_secs(1);

/// Who is asked to come later comes no later than that.
const LONGEST_ASKED: Duration = Duration::from_secs(30);

/// When a peer may be dialled again.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// How many tries in a row have failed, or came to connections that were cut almost at once.
    failed: u32,
    not_before: Option<Instant>,
}

impl Pauses {
    /// A try has come to nothing, and the other side may have asked to wait for so long.
    pub(super) fn failed(&mut self, asked: Option<Duration>, now: Instant, draw: u64) {
        self.failed = self.failed.saturating_add(1);
        let pauses = Policy::exponential(FIRST).max_delay(LONGEST).jitter(Jitter::Full);
        let asked = asked.unwrap_or_default().min(LONGEST_ASKED);
        self.not_before = Some(time::from(now, pauses.delay(self.failed, draw).max(asked)));
    }

    /// When the next try may be made; at once if there is no such time.
    pub(super) fn not_before(&self) -> Option<Instant> {
        self.not_before
    }

    /// Whether a try may be made now.
    pub(super) fn are_over(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|at| at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_as_long_as_the_other_side_asks_for_within_reason() {
        let now = Instant::now();
        let pause = |asked: Option<Duration>| {
            let mut pauses = Pauses::default();
            assert!(pauses.are_over(now));
            (0..20).for_each(|_| pauses.failed(asked, now, u64::MAX));
            pauses.not_before().unwrap() - now
        };
        assert!(pause(None) <= LONGEST);
        assert_eq!(pause(Some(Duration::from_secs(7))), Duration::from_secs(7));
        assert_eq!(pause(Some(Duration::MAX)), LONGEST_ASKED);
    }
}
