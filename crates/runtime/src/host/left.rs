//! What is left of a step's time when an attempt begins, for those who have to pass it on.

use std::time::Duration;
use steadfast_kernel::{Attempt, Policy, Timestamp};

/// What an attempt has at least: that the time is over is said by whoever waits for the step.
const LEAST: Duration = Duration::from_millis(1);

/// What is left of a step's time when an attempt begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLeft {
    /// How long this attempt may take.
    pub attempt: Duration,
    /// How long this one and all that may follow it may take together, without the waits between them; until the deadline, if there is one.
    pub whole: Duration,
}

impl TimeLeft {
    /// For that attempt of a step that was asked for then. `usual` is how long an attempt may take if the policy does not say.
    pub(super) fn of(policy: &Policy, attempt: Attempt, asked_at: Timestamp, now: Timestamp, usual: Duration) -> Self {
        let timeout = policy.attempt_timeout_for().unwrap_or(usual);
        let attempts = policy.attempts_max().saturating_sub(attempt.saturating_sub(1)).max(1);
        let whole = match policy.deadline_at(asked_at) {
            Some(deadline) => deadline.saturating_since(now),
            None => timeout.saturating_mul(attempts),
        };
        let whole = whole.max(LEAST);
        TimeLeft { attempt: timeout.min(whole), whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of an attempt and of all, in seconds, so many seconds after the step was asked for.
    fn left(policy: &Policy, attempt: Attempt, after: u64) -> (u64, u64) {
        let seconds = Duration::from_secs;
        let (asked_at, now) = (Timestamp::EPOCH, Timestamp::EPOCH.saturating_add(seconds(after)));
        let TimeLeft { attempt, whole } = TimeLeft::of(policy, attempt, asked_at, now, seconds(30));
        (attempt.as_secs(), whole.as_secs())
    }

    #[test]
    fn every_attempt_has_the_time_of_those_that_are_left() {
        let policy = Policy::constant(Duration::from_secs(1)).max_attempts(3).attempt_timeout(Duration::from_secs(2));
        assert_eq!([1, 2, 3, 4].map(|attempt| left(&policy, attempt, 100)), [(2, 6), (2, 4), (2, 2), (2, 2)]);
        assert_eq!(left(&Policy::once(), 1, 0), (30, 30), "as usual");
    }

    #[test]
    fn a_deadline_is_the_same_for_all_attempts() {
        let policy = Policy::transient().deadline(Duration::from_secs(30)).attempt_timeout(Duration::from_secs(10));
        assert_eq!([(1, 0), (2, 11), (3, 23)].map(|(attempt, after)| left(&policy, attempt, after)), [(10, 30), (10, 19), (7, 7)]);
        let over = TimeLeft::of(&policy, 3, Timestamp::EPOCH, Timestamp::EPOCH.saturating_add(Duration::from_secs(31)), LEAST);
        assert_eq!(over, TimeLeft { attempt: LEAST, whole: LEAST });
    }
}
