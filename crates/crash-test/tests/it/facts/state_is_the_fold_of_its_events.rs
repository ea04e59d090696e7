//! Rows, timers and letters in the store are the fold of the journals: what a commit writes beside the events is there with them, or not at all.
//! That a journal can be folded is seen when the world is read.

use crate::world::{SHARD, World};
use std::collections::BTreeMap;
use steadfast_kernel::{LetterId, Run};
use steadfast_store::{LetterChange, LetterRow, RunRow, TimerKey};

pub(super) fn holds(now: &World, _before: &World) {
    rows(now);
    timers(now);
    letters(now);
}

fn rows(now: &World) {
    let mut rows = now.rows.clone();
    rows.sort_by(|a, b| a.run.cmp(&b.run));
    for (row, (run, history)) in rows.iter().zip(now.runs()) {
        assert_eq!(*row, RunRow::of(SHARD, run), "the row is not the fold of {:?}", history.kinds());
    }
    assert_eq!(rows.len(), now.runs().count(), "a row per run");
}

fn timers(now: &World) {
    let mut timers: Vec<_> = now.runs().flat_map(|(run, _)| Run::timers(run)).collect();
    timers.sort_by_key(|timer| TimerKey::from(timer));
    assert_eq!(now.timers, timers, "the timers are not the fold of the journals");
}

fn letters(now: &World) {
    let mut letters: BTreeMap<LetterId, LetterRow> = BTreeMap::new();
    for (id, history) in &now.entities {
        for change in history.journal.iter().filter_map(|entry| LetterChange::of(SHARD, id, entry)) {
            match change {
                LetterChange::Put(row) => drop(letters.insert(row.letter.clone(), row)),
                LetterChange::Fail(letter, failure) => drop(letters.entry(letter).and_modify(|row| row.failure = failure)),
                LetterChange::Remove(letter) => drop(letters.remove(&letter)),
            }
        }
    }
    let stored: BTreeMap<LetterId, LetterRow> = now.letters.iter().map(|row| (row.letter.clone(), row.clone())).collect();
    assert_eq!(stored, letters, "the letters are not the fold of their boxes");
}
