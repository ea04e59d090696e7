//! A step or undo whose success is on record is not executed again under its idempotency key; the key changes only if a retry discards the success on
//! purpose, or the code continues as new. And what is on record as a success was executed, or supplied.

use super::a_recorded_step_never_changes::success;
use crate::world::World;
use std::collections::BTreeMap;
use steadfast_kernel::{Event, Run, StepId, Timestamp};

pub(super) fn holds(now: &World, _before: &World) {
    let mut executed: BTreeMap<&str, Timestamp> = BTreeMap::new();
    for line in &now.log {
        let last = executed.entry(&line.key).or_insert(line.at);
        *last = (*last).max(line.at);
    }
    for (run, entry) in now.runs().flat_map(|(_, history)| history.run_moments()) {
        let Some(key) = success(run, &entry.event) else { continue };
        match executed.get(key.as_str()) {
            Some(last) => assert!(*last <= entry.at, "{key} was executed at {last}, and its success is on record since {}", entry.at),
            None => assert!(is_supplied(run, &entry.event), "{key} is on record and was never executed"),
        }
    }
}

fn is_supplied(run: &Run, event: &Event) -> bool {
    let supplied = |step: &StepId| run.supplied.contains_key(step);
    event.subject().is_some_and(supplied)
}
