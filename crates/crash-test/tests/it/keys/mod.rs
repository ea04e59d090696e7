//! A process whose keys expire, killed again and again: every end is told, none too early, and none again that is known to be told.
//!
//! Subject: `crates/runtime/src/shard/keys.rs`.

mod facts;
mod left;
mod said;

use crate::victim::{Life, Victim};
use crate::{Repeat, kills, machine, setting};
use facts::Settled;
use left::Left;
use said::Said;
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_kernel::random::Stream;

/// So many kills leave everything behind that there is.
const KILLS_ENOUGH: u64 = 24;

#[test]
fn every_expiry_is_told_and_nothing_that_is_known_to_be_told_is_told_again() {
    let _machine = machine();
    let seed = setting("CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let wanted = setting("CRASH_KILLS").unwrap_or(KILLS_ENOUGH).min(KILLS_ENOUGH);
    let repeat = Repeat(format!("CRASH_SEED={seed} CRASH_KILLS={wanted}"));
    println!("{}", repeat.0);
    let mut chance = kills(seed);
    let folder = tempfile::tempdir().unwrap();
    let (mut said, mut settled, mut seen) = (Said::default(), Settled::default(), BTreeMap::new());
    for process in 1.. {
        let mercy = u64::from(process) > wanted;
        let end = Victim::start(folder.path(), process, "keys").live(if mercy { Life::Whole } else { draw(&mut chance) });
        said.hear(&end.acknowledged);
        let left = Left::by(process, folder.path(), said.names());
        said.look_back(&left.rows);
        facts::hold(&left, &said, &mut settled);
        note(&mut seen, &left);
        if mercy {
            assert!(end.done, "left alone, the process does not come to an end\n{:?}\n{:?}\n{}", left.callbacks, left.rows, end.errors);
            facts::hold_at_the_end(&left);
            break;
        }
    }
    println!("{wanted} kills left behind: {seen:?}");
    let missed: Vec<_> = seen.iter().filter(|(_, count)| **count == 0).collect();
    assert!(wanted < KILLS_ENOUGH || missed.is_empty(), "no kill has left behind any of {missed:?}");
}

/// While it opens the store, or while it is at work.
fn draw(chance: &mut Stream) -> Life {
    let mut below = |bound: u64| chance.next_u64() % bound;
    match below(4) {
        0 => Life::FromBirth(Duration::from_micros(below(80_000))),
        1 => Life::Long(120 + below(160)), // long enough for long journals
        _ => Life::Busy(below(200), Duration::from_micros(below(12_000))),
    }
}

/// Counts what kills leave behind: whether they come at moments worth looking at.
fn note(seen: &mut BTreeMap<&'static str, usize>, left: &Left) {
    let later = left.callbacks.iter().filter(|row| row.next_at.is_some()).count();
    let journals = left.journals.values();
    for (what, count) in [
        ("keys", left.rows.len()),
        ("keys whose time is over", left.rows.iter().filter(|row| row.held.is_over(left.read_at)).count()),
        ("first attempts", left.callbacks.len() - later),
        ("later attempts", later),
        ("letters", left.letters.len()),
        ("runs", left.runs.len()),
        ("forgotten journals", journals.clone().filter(|journal| journal.is_empty()).count()),
        ("shortened journals", journals.filter(|journal| journal.first().is_some_and(|first| first.seq > 1)).count()),
    ] {
        *seen.entry(what).or_default() += count;
    }
}
