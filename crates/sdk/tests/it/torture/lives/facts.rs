//! What must hold after every process, and what when every run has ended.

use super::entities::{Life, life};
use super::ledger::{Ledger, Sent};
use super::plan::SLOTS;
use super::shards::{self, at_once};
use std::collections::{BTreeMap, BTreeSet};
use steadfast::memory::Memory;
use steadfast::{Code, Event, LetterRow};
use steadfast_kernel::{Entity, EntityId, Envelope, Run};
use steadfast_store::{LetterChange, LetterCursor, RunRow, Store, TimerKey};

/// After every process.
pub(super) fn always(ledger: &Ledger) {
    assert_eq!(ledger.wrong(), Vec::<String>::new());
    let store = ledger.store();
    let lives = all(ledger);
    rows_and_timers_are_folds(&store, &lives);
    letters_are_the_fold_of_their_boxes(&store, &lives);
    no_more_holders_than_slots(&lives);
    what_is_not_settled_was_said_last(&store, &lives);
    each_message_is_heard_once(&lives);
    a_success_is_recorded_once(&lives);
    for life in lives.values() {
        assert!(life.early.is_empty(), "{:?} of {} fired early: {:#?}", life.early, life.id, life.lines());
    }
    what_was_acknowledged_is_on_record(ledger, &lives);
    for (((key, _), epoch), times) in ledger.happened() {
        let lines = lives
            .values()
            .filter(|life| life.run().is_some_and(|run| key.starts_with(&format!("{}/s", run.id))));
        assert!(times == 1, "{key} has happened {times} times in epoch {epoch} {:#?}", lines.map(Life::lines).collect::<Vec<_>>());
    }
}

/// The types of all events that have happened.
pub(super) fn kinds(ledger: &Ledger) -> BTreeSet<&'static str> {
    all(ledger).values().flat_map(|life| &life.entries).map(|entry| entry.event.kind()).collect()
}

/// When every run has ended.
pub(super) fn at_rest(ledger: &Ledger) {
    always(ledger);
    let store = ledger.store();
    assert_eq!(shards::timers(&store), [], "runs that have ended take their timers with them");
    assert_eq!(shards::outbox(&store), [], "everything is settled");
    let lives = all(ledger);
    for life in lives.values() {
        match &life.state {
            Some(Entity::Limit(limit)) => assert!(limit.members.is_empty(), "{:?}: every slot came back {:#?}", limit, life.lines()),
            Some(Entity::Run(run)) => {
                assert!(run.ended().is_some(), "{} has not ended", run.id);
                children_ended_as_their_parents_heard(run, life, &lives);
            }
            _ => {}
        }
    }
}

/// Every entity that is there.
fn all(ledger: &Ledger) -> BTreeMap<String, Life> {
    let store = ledger.store();
    let half_swept = shards::half_swept(&store);
    let is_there = |id: &EntityId| !half_swept.contains(id);
    store
        .entities()
        .into_iter()
        .filter(is_there)
        .map(|id| (id.to_string(), life(&store, &id)))
        .collect()
}

fn rows_and_timers_are_folds(store: &Memory, lives: &BTreeMap<String, Life>) {
    let mut timers = Vec::new();
    for life in lives.values() {
        let Some(run) = life.run() else { continue };
        assert_eq!(life.entries.first().map(|entry| entry.seq), Some(1), "{} has a journal without a beginning", run.id);
        let row = at_once(store.run(&run.id));
        assert_eq!(
            row,
            Some(RunRow::of(shards::shard_of(store, &(&run.id).into()), run)),
            "the row of {} is not the fold of its journal {:#?}",
            run.id,
            life.lines()
        );
        timers.extend(run.timers());
    }
    timers.sort_by_key(|timer| TimerKey::from(timer));
    assert_eq!(shards::timers(store), timers, "the timers are not the fold of the journals");
}

/// All letters, newest first.
pub(super) fn letters(store: &Memory) -> Vec<LetterRow> {
    if store.is_dead() { Vec::new() } else { at_once(store.letters(&steadfast_store::LetterFilter::default(), None, 1000)) }
}

fn letters_are_the_fold_of_their_boxes(store: &Memory, lives: &BTreeMap<String, Life>) {
    let mut rows = BTreeMap::new();
    for life in lives.values() {
        for change in life
            .entries
            .iter()
            .filter_map(|entry| LetterChange::of(shards::shard_of(store, &life.id), &life.id, entry))
        {
            match change {
                LetterChange::Put(row) => drop(rows.insert(LetterCursor::from(&row), row)),
                LetterChange::Fail(letter, failure) => {
                    rows.values_mut().filter(|row| row.letter == letter).for_each(|row| row.failure = failure.clone())
                }
                LetterChange::Remove(letter) => rows.retain(|_, row| row.letter != letter),
            }
        }
    }
    let rows: Vec<LetterRow> = rows.into_values().rev().collect();
    assert_eq!(letters(store), rows, "the letters are not the fold of their boxes");
}

fn no_more_holders_than_slots(lives: &BTreeMap<String, Life>) {
    for life in lives.values() {
        assert!(life.held_most <= SLOTS as usize, "{} were held at once: {:#?}", life.held_most, life.lines());
    }
}

/// The next message of a pair is delivered after the one before it is settled: what is left is the end of what was said.
fn what_is_not_settled_was_said_last(store: &Memory, lives: &BTreeMap<String, Life>) {
    let mut left: BTreeMap<(String, String), Vec<Envelope>> = BTreeMap::new();
    for envelope in shards::outbox(store) {
        left.entry((envelope.from.to_string(), envelope.to.to_string())).or_default().push(envelope);
    }
    for ((from, to), left) in left {
        let said: Vec<_> = lives[&from].said.iter().filter(|said| said.to.to_string() == to).cloned().collect();
        assert!(said.ends_with(&left), "of {said:#?} is left {left:#?}");
    }
}

fn each_message_is_heard_once(lives: &BTreeMap<String, Life>) {
    for life in lives.values() {
        let mut last: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for entry in &life.entries {
            let Some(heard) = &entry.heard else { continue };
            let before = last.insert(heard.from.to_string(), (heard.seq, entry.seq));
            let follows = before.is_none_or(|(seq, at)| seq < heard.seq || (seq == heard.seq && at + 1 == entry.seq));
            assert!(follows, "{} has heard {heard:?} after {before:?}: {:#?}", life.id, life.lines());
        }
    }
}

fn a_success_is_recorded_once(lives: &BTreeMap<String, Life>) {
    for life in lives.values() {
        for (key, places) in &life.succeeded {
            assert!(places.len() == 1, "the success of {key} is on record at {places:?}: {:#?}", life.lines());
        }
    }
}

fn what_was_acknowledged_is_on_record(ledger: &Ledger, lives: &BTreeMap<String, Life>) {
    for (id, began) in ledger.starts() {
        assert!(
            lives
                .values()
                .any(|life| life.run().is_some_and(|run| run.id.as_str() == id && run.started_at == began)),
            "the start of {id} was acknowledged and is gone"
        );
    }
    let mut found: BTreeMap<(String, String), u32> = BTreeMap::new();
    for life in lives.values() {
        for tag in life.origins().filter_map(|origin| origin.why.clone()) {
            let run = life.run().map_or_else(String::new, |run| run.id.to_string());
            *found.entry((tag, run)).or_default() += 1;
        }
    }
    for (tag, Sent { run, leaves_a_trace, times, refused, acknowledged, of }) in ledger.orders() {
        let count = found.get(&(tag.clone(), run.clone())).copied().unwrap_or_default();
        assert!(count <= 1, "{tag} of {run} is on record {count} times, and was sent {times} times");
        let is_gone = of.is_none_or(|began| ledger.may_be_gone(&(run.clone(), began)));
        assert!(count == 1 || !acknowledged || !leaves_a_trace || is_gone, "{tag} of {run} was acknowledged and is not on record");
        assert!(count == 0 || !refused || times > 1, "{tag} of {run} was refused and is on record");
    }
}

/// What a parent heard of a child's end is what became of it in one of its lives.
fn children_ended_as_their_parents_heard(run: &Run, life: &Life, lives: &BTreeMap<String, Life>) {
    let mut children = BTreeMap::new();
    for entry in &life.entries {
        match &entry.event {
            Event::ChildStarted { child, run, .. } => drop(children.insert(child.clone(), run.clone())),
            Event::ChildEnded { child, outcome } => {
                let id = EntityId::Run(children[child].clone()).to_string();
                let Some(of_the_child) = lives.get(&id).filter(|life| life.run().is_some_and(|run| run.started_at <= entry.at)) else {
                    continue; // it was removed before its parent
                };
                let ended = of_the_child.entries.iter().any(|entry| match &entry.event {
                    Event::RunCompleted { output } => outcome.as_ref() == Ok(output),
                    Event::RunFailed { failure } => outcome.as_ref() == Err(failure),
                    Event::RunCancelled => outcome.is_err(),
                    _ => false,
                });
                let is_another = of_the_child.run().is_some_and(|child| child.started_at < run.started_at); // of an earlier run of the parent's id
                let is_taken = is_another && outcome.as_ref().is_err_and(|failure| failure.code == Code::FailedPrecondition);
                assert!(ended || is_taken, "{} has heard of an end of {id} that was not: {outcome:?} {:#?}", run.id, life.lines());
            }
            _ => {}
        }
    }
}
