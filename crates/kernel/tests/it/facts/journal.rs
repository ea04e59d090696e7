//! What is true of every journal.

use super::scenario::Scenario;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use steadfast_kernel::run::SIGNALS_MAX;
use steadfast_kernel::{Attempt, Entry, Event, Seq, StepId, TimerName};

/// The longest delay that any policy of a scenario gives.
const DELAY_MAX: Duration = Duration::from_secs(60);

pub(super) fn sequences_have_no_gap(journal: &[Entry]) -> TestCaseResult {
    prop_assert!(journal.iter().map(|entry| entry.seq).eq(1..=journal.len() as Seq));
    Ok(())
}

pub(super) fn attempts_are_consecutive_and_bounded(journal: &[Entry], scenario: &Scenario) -> TestCaseResult {
    let deadline = journal.first().and_then(|entry| match entry.event {
        Event::RunStarted { deadline_at, .. } => deadline_at,
        _ => None,
    });
    let mut to_come: BTreeMap<StepId, Attempt> = BTreeMap::new();
    for entry in journal {
        match &entry.event {
            Event::RetryScheduled { step, attempt, of, delay, due_at, .. } => {
                let expected = to_come.entry(step.clone()).or_insert(1);
                *expected += 1;
                prop_assert_eq!(*attempt, *expected);
                prop_assert!(attempt <= of);
                prop_assert!(*delay <= DELAY_MAX, "{:?} is above the cap", delay);
                prop_assert_eq!(*due_at, entry.at.saturating_add(*delay));
                let bound = deadline.filter(|_| step.undone().is_none()); // what was done may be undone after the deadline
                prop_assert!(bound.is_none_or(|deadline| *due_at < deadline), "an attempt after the deadline");
                if let [policy] = &scenario.policies[..] {
                    prop_assert!(*attempt <= policy.attempts_max());
                }
            }
            Event::StepStarted { step, attempt } | Event::StepCompleted { step, attempt, .. } | Event::StepFailed { step, attempt, .. } => {
                prop_assert_eq!(*attempt, to_come.get(step).copied().unwrap_or(1));
            }
            Event::UndoCompleted { step, attempt } => prop_assert_eq!(*attempt, to_come.get(&step.undo()).copied().unwrap_or(1)),
            Event::UndoFailed { step, attempt, .. } => {
                prop_assert_eq!(*attempt, to_come.remove(&step.undo()).unwrap_or(1)); // and it may begin again
            }
            _ => {}
        }
    }
    Ok(())
}

/// An outcome is for ever, a sleep fires once, and nothing comes of what was abandoned.
pub(super) fn a_recorded_step_never_changes(journal: &[Entry]) -> TestCaseResult {
    let (mut steps, mut set, mut fired) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut waits = BTreeMap::new();
    for entry in journal {
        match &entry.event {
            Event::StepCompleted { step, .. } | Event::StepFailed { step, .. } => {
                prop_assert!(steps.insert(step), "two outcomes of {}", step)
            }
            Event::StepStarted { step, .. } | Event::RetryScheduled { step, .. } => {
                prop_assert!(!steps.contains(step), "{} has its outcome and is tried again", step)
            }
            Event::TimerSet { sleep, .. } => prop_assert!(set.insert(sleep), "{} is set twice", sleep),
            Event::SignalAwaited { wait, until, .. } => prop_assert_eq!(waits.insert(wait, until), None, "{} is asked for twice", wait),
            Event::SignalTaken { wait, .. } => prop_assert!(waits.remove(wait).is_some(), "{} is over already", wait),
            Event::TimerFired { sleep } => match waits.remove(sleep) {
                Some(until) => prop_assert!(until.is_some(), "{} has no end", sleep),
                None => prop_assert!(set.contains(sleep) && fired.insert(sleep), "{} fires twice or unset", sleep),
            },
            Event::RunCompensating { .. } => waits.clear(),
            _ => {}
        }
        for name in &entry.abandoned {
            match name {
                TimerName::Retry(step) => drop(steps.insert(step)),
                TimerName::Sleep(sleep) if waits.remove(sleep).is_none() => drop(fired.insert(sleep)),
                TimerName::Sleep(_) => {}
                TimerName::Deadline => prop_assert!(false, "the deadline is abandoned"),
            }
        }
    }
    Ok(())
}

/// A signal is received once per id and taken once, by one who waits for its name. Says whether the code has something to be told: a
/// signal that is there and asked for, or that the run is called off.
pub(super) fn signals_are_taken_once(journal: &[Entry]) -> Result<bool, TestCaseError> {
    let (mut ids, mut there, mut waits) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    let mut called_off = false;
    for entry in journal {
        match &entry.event {
            Event::SignalReceived { name, id, .. } => {
                prop_assert!(id.as_ref().is_none_or(|id| ids.insert(id)), "{:?} is received twice", id);
                there.insert(entry.seq, name);
            }
            Event::SignalAwaited { wait, name, .. } => drop(waits.insert(wait, name)),
            Event::SignalTaken { wait, signal } => {
                let (asked, taken) = (waits.remove(wait), there.remove(signal));
                prop_assert!(taken.is_some() && asked == taken, "signal {} is {:?}, {} waits for {:?}", signal, taken, wait, asked);
            }
            Event::TimerFired { sleep } => drop(waits.remove(sleep)),
            Event::RunCancelRequested { .. } => called_off = true,
            Event::RunCompensating { .. } => waits.clear(),
            _ => {}
        }
        for name in &entry.abandoned {
            if let TimerName::Sleep(wait) = name {
                waits.remove(wait);
            }
        }
    }
    let for_the_code = there.values().filter(|name| !name.contains(':')).count();
    prop_assert!(for_the_code <= SIGNALS_MAX, "answers to the engine's own questions are not kept out");
    let over = journal.iter().any(|entry| entry.event.is_end());
    let undoing = journal.iter().any(|entry| matches!(entry.event, Event::RunCompensating { .. }));
    Ok(!over && ((called_off && !undoing) || waits.values().any(|name| there.values().any(|other| other == name))))
}

/// Nothing of the code comes after the beginning of compensation, nothing is undone before it, and nothing is undone twice.
pub(super) fn code_and_undo_exclude_each_other(journal: &[Entry]) -> TestCaseResult {
    let (mut undoable, mut undoing) = (BTreeSet::new(), false);
    for entry in journal {
        let of_the_undo = match &entry.event {
            Event::StepCompleted { step, undoable: true, .. } => {
                undoable.insert(step.clone());
                false
            }
            Event::RunCompensating { .. } => {
                prop_assert!(!std::mem::replace(&mut undoing, true), "it begins twice");
                continue;
            }
            Event::UndoCompleted { step, .. } => {
                prop_assert!(undoable.remove(step), "{} was not to be undone", step);
                true
            }
            Event::UndoFailed { step, .. } => {
                prop_assert!(undoable.contains(step), "{} was not to be undone", step);
                true
            }
            Event::RetryScheduled { step, .. } => {
                prop_assert!(step.undone().is_none_or(|step| undoable.contains(&step)), "{} was not to be undone", step);
                step.undone().is_some()
            }
            Event::StepStarted { .. }
            | Event::StepCompleted { .. }
            | Event::StepFailed { .. }
            | Event::TimerSet { .. }
            | Event::RunCompleted { .. } => false,
            _ => continue,
        };
        prop_assert_eq!(of_the_undo, undoing, "event {} ({})", entry.seq, entry.event.kind());
    }
    Ok(())
}

pub(super) fn an_end_that_was_not_asked_for_is_no_cancel(journal: &[Entry]) -> TestCaseResult {
    let requests = journal.iter().filter(|entry| matches!(entry.event, Event::RunCancelRequested { .. })).count();
    prop_assert!(requests <= 1, "it is asked for twice");
    prop_assert!(requests == 1 || journal.iter().all(|entry| entry.event != Event::RunCancelled));
    Ok(())
}

pub(super) fn nothing_follows_an_end(journal: &[Entry]) -> TestCaseResult {
    let end = journal.iter().position(|entry| entry.event.is_end());
    prop_assert!(end.is_none_or(|end| end + 1 == journal.len()));
    Ok(())
}
