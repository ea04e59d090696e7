//! Attempts of a step count from 1 without a gap, in every life anew, and there are not more of them than its policy allows. What is executed is the
//! attempt that the journal says is to come.

use crate::world::{History, World};
use std::collections::{BTreeMap, BTreeSet};
use steadfast_crash_test::shapes::FLAKY_MAX;
use steadfast_kernel::{Attempt, Event, Run, StepId};

pub(super) fn holds(now: &World, _before: &World) {
    for (run, history) in now.runs() {
        on_record(run, history);
    }
    let scheduled: BTreeSet<(&str, &str, Attempt)> = now.runs().flat_map(|(run, history)| scheduled(run, history)).collect();
    for line in now.log.iter().filter(|line| line.attempt > 1) {
        let attempt = (line.run.as_str(), line.step.as_str(), line.attempt);
        assert!(scheduled.contains(&attempt), "attempt {attempt:?} was executed and nobody has scheduled it");
    }
}

fn on_record(run: &Run, history: &History) {
    let mut to_come: BTreeMap<StepId, Attempt> = BTreeMap::new();
    for entry in &history.journal {
        let (due, attempt) = match &entry.event {
            Event::RunRetried(retried) => {
                to_come.retain(|step, _| step.undone().is_none() && !retried.reset.contains(step));
                continue;
            }
            Event::RunContinued { .. } => {
                to_come.clear();
                continue;
            }
            Event::RetryScheduled { step, attempt, of, .. } => {
                assert!(attempt <= of && *of <= FLAKY_MAX, "{step} of {} is at attempt {attempt} of {of}", run.id);
                (to_come.insert(step.clone(), *attempt), attempt - 1)
            }
            Event::StepCompleted { step, attempt, .. }
            | Event::StepFailed { step, attempt, .. }
            | Event::StepHeartbeat { step, attempt, .. } => (to_come.get(step).copied(), *attempt),
            Event::UndoCompleted { step, attempt } => (to_come.get(&step.undo()).copied(), *attempt),
            _ => continue,
        };
        assert_eq!(attempt, due.unwrap_or(1), "event {} of {}: {:?}", entry.seq, run.id, history.kinds());
    }
}

fn scheduled<'a>(run: &'a Run, history: &'a History) -> impl Iterator<Item = (&'a str, &'a str, Attempt)> {
    history.journal.iter().filter_map(|entry| match &entry.event {
        Event::RetryScheduled { step, attempt, .. } => Some((run.id.as_str(), step.as_str(), *attempt)),
        _ => None,
    })
}
