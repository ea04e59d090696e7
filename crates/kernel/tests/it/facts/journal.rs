//! What is true of every journal, and of what is left of it: that reads as the journal of one life.

use super::scenario::Scenario;
use crate::support::{folded, run_id};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use steadfast_kernel::run::{SIGNALS_MAX, evolve, script};
use steadfast_kernel::{Attempt, Entry, Event, Run, Seq, StepId, Timer, TimerName};

/// The longest delay that any policy of a scenario gives.
const DELAY_MAX: Duration = Duration::from_secs(60);

pub(super) fn sequences_have_no_gap(journal: &[Entry]) -> TestCaseResult {
    prop_assert!(journal.iter().map(|entry| entry.seq).eq(1..=journal.len() as Seq));
    Ok(())
}

pub(super) fn attempts_are_consecutive_and_bounded(journal: &[Entry], scenario: &Scenario) -> TestCaseResult {
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
                if let [policy] = &scenario.policies[..] {
                    prop_assert!(*attempt <= policy.attempts_max());
                }
            }
            Event::StepHeartbeat { step, attempt, .. }
            | Event::StepStarted { step, attempt }
            | Event::StepCompleted { step, attempt, .. }
            | Event::StepFailed { step, attempt, .. } => {
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
                TimerName::Sleep(sleep) if waits.remove(sleep).is_none() && set.contains(sleep) => drop(fired.insert(sleep)),
                TimerName::Sleep(_) => {}
                TimerName::Deadline => prop_assert!(false, "the deadline is abandoned"),
                name @ (TimerName::Expiry | TimerName::Callback(_) | TimerName::Forget | TimerName::Lease) => {
                    prop_assert!(false, "{name} is none of a run")
                }
            }
        }
    }
    Ok(())
}

/// A child is started once, ends once and is taken once. Says whether there is one that the code has to be told of.
pub(super) fn children_end_once(journal: &[Entry]) -> Result<bool, TestCaseError> {
    let (mut started, mut ended, mut taken) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    for entry in journal {
        match &entry.event {
            Event::ChildStarted { child, options, .. } => {
                let detached = options.parent.as_ref().is_some_and(|parent| parent.detached);
                prop_assert_eq!(started.insert(child, detached), None, "{} is started twice", child);
            }
            Event::ChildEnded { child, .. } => {
                prop_assert_eq!(started.get(child), Some(&false), "nobody waits for {}", child);
                prop_assert!(ended.insert(child), "{} ends twice", child);
            }
            Event::ChildTaken { child } => {
                prop_assert!(ended.contains(child) && taken.insert(child), "{} is taken twice or not there", child)
            }
            _ => {}
        }
        for name in &entry.abandoned {
            if let TimerName::Sleep(child) = name
                && started.contains_key(child)
            {
                taken.insert(child);
            }
        }
    }
    let closed = |entry: &Entry| entry.event.is_end() || matches!(entry.event, Event::RunCompensating { .. });
    Ok(!journal.iter().any(closed) && ended.difference(&taken).next().is_some())
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

/// The end is asked for once, but for a run that stands still, which goes on by it, and one that is terminated.
pub(super) fn an_end_that_was_not_asked_for_is_no_cancel(journal: &[Entry]) -> TestCaseResult {
    let count = |which: fn(&Event) -> bool| journal.iter().filter(|entry| which(&entry.event)).count();
    let requests = count(|event| matches!(event, Event::RunCancelRequested { .. }));
    let again =
        count(|event| matches!(event, Event::RunPaused { .. } | Event::RunInterrupted | Event::RunCancelRequested { terminate: true, .. }));
    prop_assert!(requests <= 1 + again, "it is asked for twice");
    prop_assert!(requests > 0 || journal.iter().all(|entry| entry.event != Event::RunCancelled));
    Ok(())
}

/// Only another life follows an end.
pub(super) fn nothing_follows_an_end(journal: &[Entry]) -> TestCaseResult {
    for pair in journal.windows(2) {
        let again = matches!(pair[1].event, Event::RunRetried(_));
        prop_assert!(!pair[0].event.is_end() || again, "{} follows the end", pair[1].event.kind());
    }
    Ok(())
}

/// Each life has the next number, and everything in it has that number.
pub(super) fn lives_are_counted(journal: &[Entry]) -> TestCaseResult {
    let mut epoch = 1;
    for entry in journal {
        epoch += u32::from(matches!(entry.event, Event::RunRetried(_) | Event::RunContinued { .. }));
        prop_assert_eq!(entry.epoch, epoch);
    }
    Ok(())
}

/// The revision of a timer is the place of the entry that it comes of: the last one of its kind.
pub(super) fn timers_come_of_their_entries(journal: &[Entry], run: &Run) -> TestCaseResult {
    for Timer { name, revision, .. } in run.timers() {
        let sets = |entry: &&Entry| match (&entry.event, &name) {
            (Event::RunStarted { .. } | Event::RunRetried(_), TimerName::Deadline) => true,
            (Event::RetryScheduled { step, .. }, TimerName::Retry(retried)) => step == retried,
            (Event::TimerSet { sleep: wait, .. } | Event::SignalAwaited { wait, .. }, TimerName::Sleep(sleep)) => wait == sleep,
            _ => false,
        };
        prop_assert_eq!(journal.iter().rev().find(sets).map(|entry| entry.seq), Some(revision), "the revision of {}", name);
        prop_assert!(!run.is_ready() || name == TimerName::Deadline, "{} has nobody to be told", name);
    }
    Ok(())
}

/// No two successes of a step, of its undo or of a child have the same key; what failed is tried again under the same.
pub(super) fn keys_tell_work_apart(journal: &[Entry]) -> TestCaseResult {
    let mut seen = BTreeSet::new();
    let mut state = None;
    for entry in journal {
        let run = evolve(&run_id(), state.take(), entry).map_err(|illegal| TestCaseError::fail(illegal.to_string()))?;
        let done = match &entry.event {
            Event::StepCompleted { step, .. } => Some(step.clone()),
            Event::UndoCompleted { step, .. } => Some(step.undo()),
            Event::ChildStarted { child, .. } => Some(child.clone()),
            _ => None,
        };
        if let Some(key) = done.map(|step| run.generations.key(&run.id, &step)) {
            prop_assert!(seen.insert(key.clone()), "{} is done twice", key);
        }
        state = Some(run);
    }
    Ok(())
}

/// The generation of a step rises exactly when a success of it is discarded, that of a child when it is.
pub(super) fn generations_rise_with_what_is_discarded(journal: &[Entry]) -> TestCaseResult {
    let Some((Entry { event: Event::RunRetried(_), .. }, before)) = journal.split_last() else { return Ok(()) };
    let (old, new) = (folded(before).expect("a run"), folded(journal).expect("a run"));
    let done = |journal: &[Entry]| -> BTreeSet<StepId> {
        let of_it = |entry: Entry| match entry.event {
            Event::StepCompleted { step, .. } => Some(step),
            Event::ChildStarted { child, .. } => Some(child),
            _ => None,
        };
        script(journal.to_vec()).into_iter().filter_map(of_it).collect()
    };
    let (had, has) = (done(before), done(journal));
    prop_assert!(has.is_subset(&had));
    for step in &had {
        let raised = new.generations.get(step) - old.generations.get(step);
        prop_assert_eq!(raised, u32::from(!has.contains(step)), "the generation of {}", step);
    }
    prop_assert_eq!(new.generations.of.values().sum::<u32>() - old.generations.of.values().sum::<u32>(), (had.len() - has.len()) as u32);
    Ok(())
}
