//! Durable timers: what a run waits for that only time brings.

use crate::{RunId, Seq, StepId, Timestamp};
use std::fmt;

/// A timer of a run. Firing carries the revision, so that a timer that was replaced meanwhile is a no-op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The run it belongs to.
    pub run: RunId,
    /// Which of the run's timers it is.
    pub name: TimerName,
    /// When it is to fire; never earlier.
    pub due: Timestamp,
    /// The sequence of the event that armed it.
    pub revision: Seq,
}

/// Which of a run's timers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerName {
    /// The next attempt of a step.
    Retry(StepId),
    /// The end of a sleep.
    Sleep(StepId),
    /// The end of the run, whatever it is doing.
    Deadline,
}

impl TimerName {
    /// The step, sleep or wait that it belongs to.
    pub fn step(&self) -> Option<&StepId> {
        match self {
            TimerName::Retry(step) | TimerName::Sleep(step) => Some(step),
            TimerName::Deadline => None,
        }
    }

    /// Takes a name as it was stored.
    pub fn from_stored(text: &str) -> Option<Self> {
        match text.split_once(':') {
            None => (text == "deadline").then_some(TimerName::Deadline),
            Some(("retry", step)) => Some(TimerName::Retry(StepId::from_stored(step))),
            Some(("sleep", sleep)) => Some(TimerName::Sleep(StepId::from_stored(sleep))),
            Some(_) => None,
        }
    }
}

/// The stored form: `retry:STEP`, `sleep:SLEEP` or `deadline`.
impl fmt::Display for TimerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimerName::Retry(step) => write!(f, "retry:{step}"),
            TimerName::Sleep(sleep) => write!(f, "sleep:{sleep}"),
            TimerName::Deadline => f.write_str("deadline"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_being_stored() {
        let step = StepId::new("left", "charge", 2).unwrap();
        for name in [TimerName::Retry(step.clone()), TimerName::Sleep(step), TimerName::Deadline] {
            assert_eq!(TimerName::from_stored(&name.to_string()), Some(name));
        }
        assert_eq!(TimerName::from_stored("other"), None);
        assert_eq!(TimerName::from_stored("other:x#1"), None);
    }
}
