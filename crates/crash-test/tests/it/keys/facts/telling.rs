//! Every end is told, none too early, none again that is known to be told; what was changed in time is not told.

use super::Settled;
use crate::keys::left::Left;
use crate::keys::said::{Fate, Said, Stay};
use std::collections::{BTreeMap, BTreeSet};
use steadfast_crash_test::keys::{HOPELESS, QUIET, RUN};
use steadfast_kernel::{Event, Revision};

pub(crate) fn hold(left: &Left, said: &Said, stays: &[Stay], settled: &mut Settled) {
    let known: BTreeMap<_, _> = stays.iter().map(|stay| ((stay.key.as_str(), stay.revision), stay)).collect();
    a_call_says_what_was_put(left, said, &known);
    nothing_is_told_early(left, &known);
    nothing_acknowledged_is_lost(left, said, stays);
    what_was_changed_is_not_told(left, stays);
    what_is_told_is_not_told_again(left, settled);
    an_expiry_starts_one_run(left, said, &known);
}

fn a_call_says_what_was_put(left: &Left, said: &Said, known: &BTreeMap<(&str, Revision), &Stay>) {
    let mut values: BTreeMap<(&str, Revision), &str> = BTreeMap::new();
    for call in &left.calls {
        let value = known.get(&(call.key.as_str(), call.revision)).map_or(call.value.as_str(), |stay| &stay.value);
        let first = *values.entry((&call.key, call.revision)).or_insert(value);
        assert_eq!(call.value, first, "revision {} of {} had another value", call.revision, call.key);
        assert!(said.has_put(&call.key, &call.value), "nobody has put {call:?}");
    }
    for row in &left.rows {
        if let Some(stay) = known.get(&(row.key.as_str(), row.held.revision)) {
            let value = String::from_utf8_lossy(&row.held.value.bytes);
            assert_eq!(value.trim_matches('"'), stay.value, "{} holds something else than what was acknowledged", row.key);
        }
    }
}

fn nothing_is_told_early(left: &Left, known: &BTreeMap<(&str, Revision), &Stay>) {
    for call in &left.calls {
        assert!(call.expired_at <= call.at, "{call:?} was told early");
        let Some(stay) = known.get(&(call.key.as_str(), call.revision)) else { continue };
        let with_directory = known.values().any(|other| {
            let is_above = stay.key.strip_prefix(&other.key).is_some_and(|rest| rest.starts_with('/'));
            is_above && other.expires_at == call.expired_at && stay.put_at <= other.expires_at && other.expires_at < stay.expires_at
        });
        assert!(with_directory || call.expired_at == stay.expires_at, "{call:?} tells another time than that of {stay:?}");
    }
}

/// What was put and left alone is there until its time is over, then its end is to be told, and it is gone only once that is done.
fn nothing_acknowledged_is_lost(left: &Left, said: &Said, stays: &[Stay]) {
    let told: BTreeSet<_> = left.calls.iter().filter(|call| call.told).map(|call| (call.key.as_str(), call.revision)).collect();
    for stay in stays.iter().filter(|stay| stay.fate == Fate::Expires) {
        let (key, revision) = (stay.key.as_str(), stay.revision);
        if left.row(key).is_some_and(|row| row.held.revision == revision) || left.is_pending(key, revision) {
            continue;
        }
        let is_told = match key {
            _ if key.starts_with(QUIET) => stay.expires_at <= left.read_at,
            _ if key.starts_with(RUN) => left.run(key, revision).is_some(),
            _ if key.starts_with(HOPELESS) => said.letters.contains(&("dropping".into(), key.into(), revision)),
            _ => told.contains(&(key, revision)),
        };
        assert!(is_told, "{stay:?} is gone, and nobody was told");
    }
    for (verb, key, revision) in &said.letters {
        assert!(verb != "dropped" || !left.is_pending(key, *revision), "the letter about {key}/{revision} was dropped, and is there");
    }
}

fn what_was_changed_is_not_told(left: &Left, stays: &[Stay]) {
    let called: BTreeSet<_> = left.calls.iter().map(|call| (call.key.as_str(), call.revision)).collect();
    for stay in stays.iter().filter(|stay| matches!(stay.fate, Fate::Changed(_))) {
        let (key, revision) = (stay.key.as_str(), stay.revision);
        assert!(!called.contains(&(key, revision)), "{stay:?} was changed in time, and told");
        assert_eq!(left.run(key, revision), None, "{stay:?} was changed in time, and has started a run");
        assert!(!left.is_pending(key, revision), "{stay:?} was changed in time, and is to be told");
        let there = left.row(key).filter(|row| row.held.revision <= revision);
        assert!(there.is_none_or(|row| left.has_ended_with_its_directory(row)), "{stay:?} was changed, and is there");
    }
}

/// No process that began after it was on record tells of it again.
fn what_is_told_is_not_told_again(left: &Left, settled: &mut Settled) {
    for call in &left.calls {
        let known = settled.get(&(call.key.clone(), call.revision));
        assert!(known.is_none_or(|process| call.process <= *process), "{call:?} was told though process {known:?} had it on record");
    }
    // Who is told has expired by a commit: if nothing of that is to be told any more, it is on record that it was.
    let called = left
        .calls
        .iter()
        .map(|call| (call.key.clone(), call.revision))
        .filter(|(key, revision)| !left.is_pending(key, *revision));
    let recorded = left.journals.iter().flat_map(|(name, journal)| {
        journal.iter().filter_map(move |entry| match &entry.event {
            Event::CallbackSettled { revision, .. } => Some((name.to_string(), *revision)),
            _ => None,
        })
    });
    for end in called.chain(recorded) {
        settled.entry(end).or_insert(left.process);
    }
}

/// A run of an expiry has its id, so there is at most one; what it is given is what was put, and it is not there before its time.
fn an_expiry_starts_one_run(left: &Left, said: &Said, known: &BTreeMap<(&str, Revision), &Stay>) {
    for row in &left.runs {
        let of = row.run.as_str().strip_prefix("expired/").and_then(|rest| rest.rsplit_once('/'));
        let (key, revision) = of.unwrap_or_else(|| panic!("nobody has started {}", row.run));
        assert!(key.starts_with(RUN) && said.names().any(|name| name == key), "nobody has started {}", row.run);
        if let Some(stay) = known.get(&(key, revision.parse().unwrap())) {
            assert!(stay.expires_at <= row.started_at, "{} was started early: {stay:?}", row.run);
        }
    }
}
