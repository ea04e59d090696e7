//! What is left of a journal reads as the journal of one life, and the state after it is the state of the run.

use crate::support::*;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::{BTreeMap, BTreeSet};
use steadfast_kernel::run::{Open, Step, script};
use steadfast_kernel::{Entry, Event, Run, Seq};

/// The same entries as those of a first life, without gaps, and of a run that needs no slots: those of an earlier life are gone.
fn renumbered(mut script: Vec<Entry>) -> Vec<Entry> {
    script.retain(|entry| !matches!(entry.event, Event::SlotAcquired { .. }));
    let places: BTreeMap<Seq, Seq> = script.iter().map(|entry| entry.seq).zip(1..).collect();
    let moved = |mut entry: Entry| {
        (entry.seq, entry.epoch) = (places[&entry.seq], 1);
        match &mut entry.event {
            Event::SignalTaken { signal, .. } => *signal = places.get(signal).copied().unwrap_or_default(), // none if it was lost on the way
            Event::RunStarted { options, .. } => options.limits.clear(),
            _ => {}
        }
        entry
    };
    script.into_iter().map(moved).collect()
}

/// What must be the same, without places and times.
#[derive(Debug, PartialEq)]
struct Known<'a> {
    steps: BTreeMap<&'a str, String>,
    sleeps: BTreeMap<&'a str, bool>,
    waits: BTreeMap<&'a str, (&'a str, bool)>,
    signals: Vec<&'a str>,
    children: BTreeMap<&'a str, (&'a str, bool, bool, bool)>,
    undoable: BTreeSet<&'a str>,
    stands: (bool, bool, bool),
}

fn known(open: &Open) -> Known<'_> {
    let step = |step: &Step| match step {
        Step::Backoff { attempt, of, .. } => format!("attempt {attempt} of {of} to come"),
        Step::Started { attempt } => format!("attempt {attempt} begun"),
        Step::Done { how, .. } => format!("{how:?}"),
    };
    Known {
        steps: open.steps.iter().map(|(id, state)| (id.as_str(), step(state))).collect(),
        sleeps: open.sleeps.iter().map(|(id, sleep)| (id.as_str(), sleep.fired.is_some())).collect(),
        waits: open.awaits.iter().map(|(id, wait)| (id.as_str(), (wait.name.as_str(), wait.is_open()))).collect(),
        signals: open.signals.values().map(String::as_str).collect(),
        children: open
            .children
            .iter()
            .map(|(id, child)| (id.as_str(), (child.run.as_str(), child.ended, child.taken.is_some(), child.cancelled)))
            .collect(),
        undoable: open.undoable.iter().map(|step| step.as_str()).collect(),
        stands: (open.cancel_requested, open.paused.is_some(), open.interrupted.is_some()),
    }
}

/// What was given up in a life before the last but one. An entry that was discarded leaves what it gave up to the one before it, so that a later retry may
/// take another view of its place; code is not told of it, it gives it up by itself.
fn given_up(journal: &[Entry]) -> BTreeSet<&str> {
    let lives = journal.iter().rev().filter(|entry| matches!(entry.event, Event::RunRetried(_)));
    let Some(last_but_one) = lives.skip(1).map(|entry| entry.seq).next() else { return BTreeSet::new() };
    let before = journal.iter().filter(|entry| entry.seq < last_but_one);
    before
        .flat_map(|entry| &entry.abandoned)
        .filter_map(|name| name.step())
        .map(|step| step.as_str())
        .collect()
}

impl Known<'_> {
    fn without(mut self, given_up: &BTreeSet<&str>) -> Self {
        self.steps.retain(|id, _| !given_up.contains(id));
        self.sleeps.retain(|id, _| !given_up.contains(id));
        self.waits.retain(|id, _| !given_up.contains(id));
        self.children.retain(|id, _| !given_up.contains(id));
        self
    }
}

pub(super) fn script_and_state_agree(journal: &[Entry], run: &Run) -> TestCaseResult {
    let script = renumbered(script(journal.to_vec()));
    let told = match fold(&script) {
        Ok(Some(told)) => told,
        Ok(None) => return Err(TestCaseError::fail("nothing is left of the journal")),
        Err(illegal) => return Err(TestCaseError::fail(format!("what is left of the journal: {illegal}"))),
    };
    prop_assert_eq!(told.ended().map(|ended| &ended.outcome), run.ended().map(|ended| &ended.outcome));
    prop_assert_eq!((&told.input, told.seed, &told.letters), (&run.input, run.seed, &run.letters));
    if let (Some(of_script), Some(of_state)) = (told.open(), run.open()) {
        let ids = |open: &Open| open.signal_ids.keys().cloned().collect::<BTreeSet<_>>();
        let begun_anew = journal.iter().any(|entry| matches!(entry.event, Event::RunContinued { .. })); // then ids outlive their signals
        prop_assert!(ids(of_script).is_subset(&ids(of_state)) && (begun_anew || ids(of_script) == ids(of_state)), "ids of signals");
        let [of_script, of_state] = [of_script, of_state].map(|open| known(open).without(&given_up(journal)));
        prop_assert_eq!(of_script, of_state, "what is told and what is known");
    }
    Ok(())
}
