//! The run's own time: it stands still while the run is paused or interrupted, and what is pending keeps the time that was left.

use proptest::prelude::*;
use std::collections::BTreeMap;
use steadfast_kernel::run::Step;
use steadfast_kernel::{Entry, Event, Run, Seq, TimerName, Timestamp};

/// What was left, in microseconds, when the run's time began to stand still.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Frozen {
    /// The entry that says so.
    since: Seq,
    /// Of each thing that was pending then, under its revision.
    left: BTreeMap<(TimerName, Seq), i64>,
}

fn left(due: Timestamp, now: Timestamp) -> i64 {
    due.as_micros() - now.as_micros()
}

/// Everything that only time brings, whether its timer is armed or not.
fn pending(run: &Run) -> BTreeMap<(TimerName, Seq), Timestamp> {
    let Some(open) = run.open() else { return BTreeMap::new() };
    let retries = open.steps.iter().filter_map(|(step, state)| match state {
        Step::Backoff { due_at, revision, .. } => Some(((TimerName::Retry(step.clone()), *revision), *due_at)),
        _ => None,
    });
    let sleeps = open.sleeps.iter().filter(|(_, sleep)| sleep.fired.is_none());
    let sleeps = sleeps.map(|(id, sleep)| ((TimerName::Sleep(id.clone()), sleep.revision), sleep.due_at));
    let awaits = open.open_awaits();
    let awaits = awaits.filter_map(|(id, awaited)| Some(((TimerName::Sleep(id.clone()), awaited.revision), awaited.until?)));
    let deadline = run.deadline.map(|deadline| ((TimerName::Deadline, deadline.revision), deadline.at));
    retries.chain(sleeps).chain(awaits).chain(deadline).collect()
}

fn stands_still(run: &Run) -> bool {
    run.open().is_some_and(|open| open.paused.is_some() || open.interrupted.is_some())
}

impl Frozen {
    /// What is frozen after an entry. When time goes on, everything that was pending has the time that it had.
    pub(super) fn next(
        frozen: Option<Frozen>,
        before: Option<&Run>,
        run: &Run,
        entry: &Entry,
        journal: &[Entry],
    ) -> Result<Option<Frozen>, TestCaseError> {
        let stood_still = before.is_some_and(stands_still);
        match frozen {
            _ if stands_still(run) && !stood_still => {
                let left = pending(run).into_iter().map(|(what, due)| (what, left(due, entry.at)));
                Ok(Some(Frozen { since: entry.seq, left: left.collect() }))
            }
            Some(frozen) if stood_still && !stands_still(run) && run.open().is_some() => {
                frozen.all_is_left(run, entry, journal)?;
                Ok(None)
            }
            frozen => Ok(frozen.filter(|_| stands_still(run))),
        }
    }

    fn all_is_left(&self, run: &Run, entry: &Entry, journal: &[Entry]) -> Result<(), TestCaseError> {
        let retried = matches!(entry.event, Event::RunRetried(_));
        for ((name, revision), due) in pending(run) {
            if due == Timestamp::MAX || (retried && name == TimerName::Deadline) {
                continue; // for ever, or anew
            }
            let expected = match self.left.get(&(name.clone(), revision)) {
                Some(left) => *left,
                None if revision <= self.since => continue, // settled then, and not any more in another life
                None => self.set_meanwhile(&name, &journal[usize::try_from(revision).expect("a short journal") - 1]),
            };
            prop_assert_eq!(left(due, entry.at), expected, "what is left of {}", name);
        }
        Ok(())
    }

    /// What was set while time stood still has all of its time.
    fn set_meanwhile(&self, name: &TimerName, entry: &Entry) -> i64 {
        match &entry.event {
            Event::TimerSet { due_at, .. } | Event::RetryScheduled { due_at, .. } => left(*due_at, entry.at),
            Event::SignalAwaited { until: Some(until), .. } => left(*until, entry.at),
            other => panic!("{name} was not set by {}", other.kind()),
        }
    }
}
