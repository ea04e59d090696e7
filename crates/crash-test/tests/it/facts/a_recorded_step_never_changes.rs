//! What is on record stays as it is: journals only grow, a step has one outcome in a life, and one success for each idempotency key.

use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use steadfast_kernel::{Event, Run};

pub(super) fn holds(now: &World, before: &World) {
    for (id, known) in &before.entities {
        let history = now.entities.get(id).unwrap_or_else(|| panic!("{id} is gone"));
        let goes_on = history.journal.starts_with(&known.journal);
        assert!(goes_on, "the journal of {id} does not go on from where it was: {:?} is now {:?}", known.kinds(), history.kinds());
    }
    for (run, history) in now.runs() {
        for life in history.lives() {
            let mut outcomes = BTreeSet::new();
            for entry in life {
                if let Event::StepCompleted { step, .. } | Event::StepFailed { step, .. } = entry.event {
                    assert!(outcomes.insert(step.clone()), "{step} of {} has two outcomes", run.id);
                }
            }
        }
        let mut successes = BTreeMap::new();
        for (run, entry) in history.run_moments() {
            if let Some(key) = success(run, &entry.event) {
                let first = successes.insert(key.clone(), entry.seq);
                assert_eq!(first, None, "{key} has succeeded before event {}", entry.seq);
            }
        }
    }
}

/// The idempotency key of what that event says has succeeded.
pub(super) fn success(before: &Run, event: &Event) -> Option<String> {
    match event {
        Event::StepCompleted { step, .. } => Some(before.generations.key(&before.id, step)),
        Event::UndoCompleted { step, .. } => Some(format!("{}/undo", before.generations.key(&before.id, step))),
        _ => None,
    }
}
