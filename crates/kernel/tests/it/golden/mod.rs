//! Golden journals of format 1: what was recorded once is read for ever. `tests/golden/README.md` says how to add one.

mod by_hand;
mod facets;
mod snapshot;
mod state;
pub(crate) mod text;

use facets::facets;
use sha2::{Digest, Sha256};
use state::folded;
use std::collections::BTreeSet;
use std::sync::Once;
use steadfast_kernel::snapshot::FOLD;
use steadfast_kernel::{Entry, Record, Snapshot};
use text::Journal;

/// The names of all stories. What was made by hand is written first if it is missing and somebody wants that.
fn names() -> Vec<String> {
    static BY_HAND: Once = Once::new();
    BY_HAND.call_once(|| {
        let there = text::names();
        for (name, make) in by_hand::FILES.iter().filter(|(name, _)| !there.iter().any(|other| other == name)) {
            assert!(text::is_adding(), "{name} has no file; README.md in tests/golden says how to add it");
            text::add(name, &make());
        }
    });
    text::names()
}

/// Every golden journal, with the name of its file.
fn all() -> Vec<(String, Vec<Journal>)> {
    names().into_iter().map(|name| (name.clone(), text::load(&name))).collect()
}

fn entries(records: &[Record]) -> Vec<Entry> {
    records.iter().map(|record| Entry::try_from(record).unwrap()).collect()
}

/// The file of that kind that belongs to a story. One that is missing is written if somebody wants that.
fn beside(name: &str, made: &str) -> String {
    let path = text::folder().join(name);
    if text::is_adding() && !path.exists() {
        std::fs::write(&path, made).unwrap();
    }
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_golden_journal_folds_into_the_state_beside_it() {
    for (name, journals) in all() {
        let states: String = journals.iter().map(|(id, records)| folded(id, &entries(records))).collect();
        let expected = beside(&format!("{name}.state"), &states);
        assert!(states == expected, "{name} is another state now:\n{}", first_difference(&expected, &states));
    }
}

#[test]
fn every_golden_record_is_encoded_to_the_same_bytes_again() {
    for (name, journals) in all() {
        for (id, records) in journals {
            let again: Vec<Record> = entries(&records).iter().map(Record::from).collect();
            for (was, is) in records.iter().zip(&again) {
                assert_eq!(is, was, "{name}, {id}");
            }
        }
    }
}

/// A field that is new and may be absent would be read from an old snapshot as if it had been absent: only the number tells.
#[test]
fn what_is_saved_is_written_as_this_fold_has_always_written_it() {
    for (name, journals) in all() {
        let states = journals
            .iter()
            .flat_map(|(id, records)| Snapshot::of(id, &state::state(id, &entries(records))).unwrap().state);
        let made = format!("fold {FOLD} {}\n", sum(&states.collect::<Vec<u8>>()));
        let expected = beside(&format!("{name}.fold"), &made);
        assert!(made == expected, "{name} is saved as {made}and was saved as {expected}raise FOLD, and have the .fold files written again");
    }
}

/// Whoever changes a file has to change its sum, too, and cannot do that by accident.
#[test]
fn no_golden_journal_has_changed() {
    for name in names() {
        let sum = sum(&std::fs::read(text::folder().join(format!("{name}.journal"))).unwrap());
        assert_eq!(beside(&format!("{name}.sha256"), &format!("{sum}\n")).trim(), sum, "{name}.journal must never change");
    }
}

#[test]
fn no_golden_journal_has_vanished() {
    let sums = std::fs::read_dir(text::folder()).unwrap().filter(|file| {
        let path = file.as_ref().unwrap().path();
        path.extension().is_some_and(|extension| extension != "journal") && !path.with_extension("journal").exists()
    });
    let left: Vec<_> = sums.map(|file| file.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?} have no journal any more");
}

#[test]
fn every_type_of_event_is_in_a_golden_journal() {
    let sources = [
        include_str!("../../../src/event.rs"),
        include_str!("../../../src/task.rs"),
        include_str!("../../../src/plan/event.rs"),
        include_str!("../../../src/lock/event.rs"),
    ];
    let kinds = sources
        .iter()
        .map(|source| source.split("pub fn kind(").nth(1).unwrap().split("\n    }\n").next().unwrap());
    let names = kinds.flat_map(str::lines).filter_map(|line| line.split_once("=> \"")?.1.split('"').next());
    let types: BTreeSet<&str> = names.collect();
    assert!(
        ["RUN_STARTED", "LETTER_DROPPED", "STAGE_FAILED", "PLAN_PAUSED", "LOCK_BROKEN"]
            .iter()
            .all(|name| types.contains(name))
    );
    let journals = all();
    let seen: BTreeSet<&str> = records(&journals).map(|record| record.kind.as_str()).collect();
    assert_eq!(seen, types);
}

#[test]
fn every_form_of_every_event_is_in_a_golden_journal() {
    let journals = all();
    let seen: BTreeSet<String> = records(&journals).flat_map(|record| facets(&Entry::try_from(record).unwrap())).collect();
    let listed = facets::all();
    let (missing, unlisted): (Vec<_>, Vec<_>) = (listed.difference(&seen).collect(), seen.difference(&listed).collect());
    assert!(missing.is_empty() && unlisted.is_empty(), "missing: {missing:#?}, not listed: {unlisted:#?}");
}

/// The numbered fields of the body, as the source has them and as they are stored.
#[test]
fn every_field_of_a_body_is_in_a_golden_journal() {
    let source = include_str!("../../../src/record.rs");
    let body = source.split("struct Body {").nth(1).unwrap().split("\n}").next().unwrap();
    let tags = body.lines().filter_map(|line| line.split_once("tag = \"")?.1.split('"').next()?.parse().ok());
    let journals = all();
    let seen: BTreeSet<u64> = records(&journals).flat_map(|record| fields(&record.body)).collect();
    assert_eq!(seen, tags.collect::<BTreeSet<u64>>());
}

fn records(journals: &[(String, Vec<Journal>)]) -> impl Iterator<Item = &Record> {
    journals.iter().flat_map(|(_, journals)| journals).flat_map(|(_, records)| records)
}

/// The numbers of the fields in a protobuf message.
fn fields(mut bytes: &[u8]) -> Vec<u64> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = number(&mut bytes);
        fields.push(tag >> 3);
        let value = number(&mut bytes);
        match tag & 7 {
            0 => {}
            2 => bytes = &bytes[usize::try_from(value).unwrap()..],
            wire => panic!("wire type {wire}"),
        }
    }
    fields
}

fn number(bytes: &mut &[u8]) -> u64 {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let (digits, rest) = bytes.split_at(length);
    *bytes = rest;
    digits.iter().rev().fold(0, |number, digit| number << 7 | u64::from(digit & 0x7f))
}

fn first_difference(expected: &str, is: &str) -> String {
    let (mut expected, mut is) = (expected.lines(), is.lines());
    for line in 1.. {
        let (was, now) = (expected.next(), is.next());
        if was != now {
            return format!("line {line}: expected {was:?}, is {now:?}");
        }
    }
    unreachable!("they differ")
}
