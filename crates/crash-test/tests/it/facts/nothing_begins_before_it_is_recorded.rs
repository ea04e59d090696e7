//! When a step has begun, its run is on record, and so is what its code did before it.
//!
//! Subject: `crates/runtime/src/shard/perform.rs`.

use crate::world::{History, World};
use std::collections::BTreeSet;
use steadfast_kernel::Event;

pub(super) fn holds(now: &World, _before: &World) {
    let begun: BTreeSet<(&str, &str)> = now.log.iter().map(|line| (line.run.as_str(), line.step.as_str())).collect();
    for (run, step) in begun {
        let (_, history) = now.run(run).unwrap_or_else(|| panic!("{step} of {run} has begun, and the start is not on record"));
        if let Some(before) = comes_after(step) {
            assert!(done(history).any(|done| done == before), "{step} of {run} has begun, and {before} is not on record");
        }
    }
}

/// Everything that has come to an outcome.
fn done(history: &History) -> impl Iterator<Item = String> {
    history.journal.iter().filter_map(|entry| match &entry.event {
        Event::StepCompleted { step, .. } | Event::StepFailed { step, .. } => Some(step.to_string()),
        Event::UndoCompleted { step, .. } => Some(step.undo().to_string()),
        Event::TimerFired { sleep } => Some(sleep.to_string()),
        Event::ChildTaken { child } => Some(child.to_string()),
        Event::SignalTaken { wait, .. } => Some(wait.to_string()),
        _ => None,
    })
}

/// What the code of the shapes does right before that step.
fn comes_after(step: &str) -> Option<String> {
    let before = match step {
        "after#1" | "fly#1" | "verify#1" | "rise#1" => "sleep#1",
        "last#1" => "sleep#2",
        "apologise#1" => "hang#1",
        "tell#1" => "signal:go#1",
        "charge#1" => "reserve#1",
        "charge#1/undo" => "charge#1",
        "reserve#1/undo" => "charge#1/undo",
        "land#1" => "fly#1",
        "book#1/undo" => "pay#1",
        "hold#1/undo" => "hold#1",
        "switch#1" => "drain#1",
        "report#1" => "verify#1",
        "console#1" => "child:misfit#1",
        _ => {
            let (name, occurrence) = step.rsplit_once('#')?;
            return match (name, occurrence.parse::<u32>().ok()?) {
                ("shaky", n) => Some(format!("sleep#{n}")),
                ("steady", n @ 2..) => Some(format!("shaky#{}", n - 1)),
                ("add" | "part" | "join#1.0/walk" | "join#1.1/walk", n @ 2..) => Some(format!("{name}#{}", n - 1)),
                _ => None,
            };
        }
    };
    Some(before.into())
}
