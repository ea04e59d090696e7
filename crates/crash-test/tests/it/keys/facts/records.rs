//! What is stored of a key is the fold of its journal, and of a key that is forgotten nothing is left.

use crate::keys::left::Left;
use std::collections::BTreeSet;
use steadfast_kernel::{EntityId, Key, KeyName, LetterHome, TimerName};
use steadfast_store::{CallbackChange, KeyChange, key_changes};

pub(crate) fn hold(left: &Left) {
    for (name, journal) in &left.journals {
        let first = journal.first().map_or(1, |entry| entry.seq);
        assert!(journal.iter().map(|entry| entry.seq).eq((first..).take(journal.len())), "the journal of {name} has a gap: {journal:#?}");
        match left.fold(name) {
            Some(key) => is_its_fold(left, name, &key),
            None => is_gone(left, name),
        }
    }
    let strangers = left.rows.iter().map(|row| &row.key).chain(left.callbacks.iter().map(|row| &row.key));
    let strangers: Vec<_> = strangers.filter(|name| !left.journals.contains_key(*name)).collect();
    assert!(strangers.is_empty(), "nobody has put {strangers:?}");
}

fn is_its_fold(left: &Left, name: &KeyName, key: &Key) {
    let (keys, callbacks) = key_changes(0, None, key);
    let row = left.rows.iter().find(|row| row.key == *name && row.ended_at.is_none());
    let folded = keys.iter().find_map(|change| match change {
        KeyChange::Put(row) => Some(&**row),
        KeyChange::Remove(_) => None,
    });
    assert_eq!(row, folded, "the row of {name} is not the fold of its journal");
    let ended = left.rows.iter().any(|row| row.key == *name && row.ended_at.is_some());
    let ends_others = key.held.is_none() && key.callbacks.values().any(|callback| callback.below.is_some());
    assert_eq!(ended, ends_others, "a row of {name} is kept as long as keys below it may be there");

    let mut waiting: Vec<_> = left.callbacks.iter().filter(|row| row.key == *name).collect();
    waiting.sort_by_key(|row| row.revision);
    let folded = callbacks.iter().filter_map(|change| match change {
        CallbackChange::Put(row) => Some(&**row),
        CallbackChange::Remove(..) => None,
    });
    assert_eq!(waiting, folded.collect::<Vec<_>>(), "what is to be told of {name} is not the fold of its journal");

    let letters = left.letters.iter().filter(|row| row.letter.home == LetterHome::Key(name.clone()));
    let letters: BTreeSet<_> = letters.map(|row| row.letter.seq).collect();
    assert_eq!(letters, key.letters.keys().copied().collect(), "the letters of {name} are not the fold of its journal");

    assert_eq!(timers(left, name), expected_timers(key), "the timers of {name} are not the fold of its journal");
}

fn timers(left: &Left, name: &KeyName) -> BTreeSet<(String, u64)> {
    let id = EntityId::Key(name.clone());
    let its = left.timers.iter().filter(|timer| timer.entity == id);
    its.map(|timer| (timer.name.to_string(), timer.revision)).collect()
}

fn expected_timers(key: &Key) -> BTreeSet<(String, u64)> {
    let expiry = key.held.as_ref().map(|held| (TimerName::Expiry.to_string(), held.revision));
    let spent = key.held.is_none() && key.callbacks.is_empty() && key.letters.is_empty();
    let forget = spent.then(|| (TimerName::Forget.to_string(), key.seq));
    let failed = key
        .callbacks
        .values()
        .filter_map(|callback| Some((callback.revision, callback.failed.as_ref()?.seq)));
    let failed = failed.map(|(revision, seq)| (TimerName::Callback(revision).to_string(), seq));
    failed.chain(expiry).chain(forget).collect()
}

fn is_gone(left: &Left, name: &KeyName) {
    let there = left.rows.iter().any(|row| row.key == *name) || left.callbacks.iter().any(|row| row.key == *name);
    assert!(!there, "{name} has no journal, and is there");
    assert!(!left.saved.contains(name), "{name} has no journal, and something of it is saved");
    assert_eq!(timers(left, name), BTreeSet::new(), "{name} has no journal, and timers");
}
