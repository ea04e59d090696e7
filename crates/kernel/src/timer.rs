//! Durable timers: what an entity waits for that only time brings.

use crate::{EntityId, Seq, StepId, Timestamp};
use std::fmt;

/// A timer of an entity. Firing carries the revision, so that a timer that was replaced meanwhile is a no-op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Whose it is.
    pub entity: EntityId,
    /// Which of its timers it is.
    pub name: TimerName,
    /// When it is to fire; never earlier.
    pub due: Timestamp,
    /// The sequence of the event that armed it; of an expiry the revision of the key.
    pub revision: Seq,
}

/// Which of an entity's timers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerName {
    /// The next attempt of a step.
    Retry(StepId),
    /// The end of a sleep.
    Sleep(StepId),
    /// The end of the run, whatever it is doing.
    Deadline,
    /// The end of a key.
    Expiry,
    /// The next attempt to tell of the expiry of that revision.
    Callback(Seq),
    /// Nothing is left of a key that has to be known.
    Forget,
    /// The holding of a lock is to be renewed, or is over.
    Lease,
}

impl TimerName {
    /// The place of its kind in their order; within a kind the stored text has the order of the name.
    pub fn rank(&self) -> u8 {
        match self {
            TimerName::Retry(_) => 1,
            TimerName::Sleep(_) => 2,
            TimerName::Deadline => 3,
            TimerName::Expiry => 4,
            TimerName::Callback(_) => 5,
            TimerName::Forget => 6,
            TimerName::Lease => 7,
        }
    }

    /// The step, sleep or wait that it belongs to.
    pub fn step(&self) -> Option<&StepId> {
        match self {
            TimerName::Retry(step) | TimerName::Sleep(step) => Some(step),
            TimerName::Deadline | TimerName::Expiry | TimerName::Callback(_) | TimerName::Forget | TimerName::Lease => None,
        }
    }

    /// Takes a name as it was stored.
    pub fn from_stored(text: &str) -> Option<Self> {
        match text.split_once(':') {
            None => match text {
                "deadline" => Some(TimerName::Deadline),
                "expiry" => Some(TimerName::Expiry),
                "forget" => Some(TimerName::Forget),
                "lease" => Some(TimerName::Lease),
                _ => None,
            },
            Some(("callback", revision)) => revision.parse().ok().map(TimerName::Callback),
            Some(("retry", step)) => Some(TimerName::Retry(StepId::from_stored(step))),
            Some(("sleep", sleep)) => Some(TimerName::Sleep(StepId::from_stored(sleep))),
            Some(_) => None,
        }
    }
}

/// The stored form: `retry:STEP`, `sleep:SLEEP`, `deadline`, `expiry`, `callback:REVISION`, `forget` or `lease`. Within a kind it has the order of the name, so
/// revisions have all their digits.
impl fmt::Display for TimerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimerName::Retry(step) => write!(f, "retry:{step}"),
            TimerName::Sleep(sleep) => write!(f, "sleep:{sleep}"),
            TimerName::Deadline => f.write_str("deadline"),
            TimerName::Expiry => f.write_str("expiry"),
            TimerName::Callback(revision) => write!(f, "callback:{revision:020}"),
            TimerName::Forget => f.write_str("forget"),
            TimerName::Lease => f.write_str("lease"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_being_stored() {
        let step = StepId::new("left", "charge", 2).unwrap();
        let of_keys = [TimerName::Expiry, TimerName::Callback(17), TimerName::Forget, TimerName::Lease];
        for name in [TimerName::Retry(step.clone()), TimerName::Sleep(step), TimerName::Deadline]
            .into_iter()
            .chain(of_keys)
        {
            assert_eq!(TimerName::from_stored(&name.to_string()), Some(name));
        }
        assert_eq!(TimerName::from_stored("other"), None);
        assert_eq!(TimerName::from_stored("other:x#1"), None);
        assert_eq!(TimerName::from_stored("callback:x"), None);
    }
}
