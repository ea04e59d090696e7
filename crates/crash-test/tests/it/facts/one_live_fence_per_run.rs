//! One process writes at a time, and one life of a run counts: terms rise by one with each process, epochs by one with each retry and continuation, and
//! of an attempt there is one outcome.

use crate::world::World;
use std::collections::BTreeSet;
use steadfast_kernel::Event;

pub(super) fn holds(now: &World, before: &World) {
    assert!((before.head.term..=before.head.term + 1).contains(&now.head.term), "{:?} after {:?}", now.head, before.head);
    assert!(now.head.seq >= before.head.seq, "{:?} after {:?}", now.head, before.head);
    for (run, history) in now.runs() {
        let (mut epoch, mut outcomes) = (1, BTreeSet::new());
        for entry in &history.journal {
            epoch += u32::from(matches!(entry.event, Event::RunRetried(_) | Event::RunContinued { .. }));
            assert_eq!(entry.epoch, epoch, "event {} of {}", entry.seq, run.id);
            let outcome = match &entry.event {
                Event::StepCompleted { step, attempt, .. } | Event::StepFailed { step, attempt, .. } => (step.clone(), *attempt),
                Event::RetryScheduled { step, attempt, .. } => (step.clone(), attempt - 1),
                Event::UndoCompleted { step, attempt } | Event::UndoFailed { step, attempt, .. } => (step.undo(), *attempt),
                _ => continue,
            };
            assert!(outcomes.insert((epoch, outcome.clone())), "two outcomes of {outcome:?} of {} in epoch {epoch}", run.id);
        }
    }
}
