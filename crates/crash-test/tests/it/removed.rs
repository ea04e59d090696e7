//! A process that removes runs after their end, killed while it is at it: what was removed is gone whole, and nothing else is.
//!
//! Subject: `crates/runtime/src/shard/sweep.rs`.
//! Subject: `crates/store-embedded/src/tables/sweep.rs`.

use crate::victim::{Life, Victim};
use crate::{Repeat, kills, setting};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use steadfast_crash_test::{log, removed};
use steadfast_kernel::{Entity, EntityId, Entry, RunId, machine};
use steadfast_store::{RunFilter, RunRow, Store};
use steadfast_store_embedded::Embedded;

/// More than there is of anything.
const ALL: usize = 100_000;

/// So many kills leave a run behind that has gone in part.
const KILLS_ENOUGH: u64 = 15;

#[test]
fn what_is_removed_is_gone_whole_and_nothing_else_is() {
    let seed = setting("CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let wanted = setting("CRASH_KILLS").unwrap_or(KILLS_ENOUGH);
    let _repeat = Repeat(format!("CRASH_SEED={seed} CRASH_KILLS={wanted}"));
    let mut chance = kills(seed);
    let folder = tempfile::tempdir().unwrap();
    let (mut acknowledged, mut half, mut gone) = (BTreeSet::new(), 0, 0);
    for process in 1.. {
        let kills = u64::from(process) - 1;
        let seen = wanted < KILLS_ENOUGH || (half > 0 && gone > 0);
        let mercy = kills >= wanted && (seen || kills >= 8 * wanted); // a slow machine takes longer to come to it, and more kills
        let longest = 250_000 * (1 + kills / wanted.max(1));
        let life = if mercy { Life::Whole } else { Life::FromBirth(Duration::from_micros(20_000 + chance.next_u64() % longest)) };
        let end = Victim::start(folder.path(), process, "removed").live(life);
        acknowledged.extend(end.acknowledged.iter().filter_map(|line| line.strip_prefix("started ")).map(ToString::to_string));
        let left = Left::by(process, folder.path());
        left.is_whole_or_gone(process);
        gone += left.keeps_what_is_not_over(&acknowledged);
        half += left.half.len();
        if mercy {
            assert!(end.done, "left alone, the process does not come to an end\n{}", end.errors);
            let completed = left.rows.iter().filter(|row| row.status.as_str() == "COMPLETED").count();
            assert_eq!((completed, left.half.len()), (0, 0), "in the end everything is removed whose time is over");
            break;
        }
    }
    println!("{wanted} kills or more: {half} runs were found half removed, {gone} were found to be gone");
    assert!(wanted < KILLS_ENOUGH || (half > 0 && gone > 0), "no kill came while runs were removed");
}

/// What a process left behind.
struct Left {
    store: Embedded,
    _copy: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    rows: Vec<RunRow>,
    half: Vec<EntityId>,
    /// Runs that had nothing more to do than to end.
    at_their_end: BTreeSet<String>,
}

impl Left {
    /// Opens a copy, so that the next process finds the original untouched.
    fn by(process: u32, folder: &Path) -> Self {
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(folder.join("data")).into_iter().flatten() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        let store = Embedded::open(copy.path()).unwrap_or_else(|error| panic!("after process {process}: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let rows = runtime.block_on(store.runs(&RunFilter::default(), None, ALL)).unwrap();
        let half = runtime.block_on(store.half_swept(0)).unwrap();
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        let at_their_end = log::read(&log).into_iter().map(|line| line.run).collect();
        Left { store, _copy: copy, runtime, rows, half, at_their_end }
    }

    fn journal(&self, run: &RunId) -> Vec<Entry> {
        let records = self.runtime.block_on(self.store.journal(&run.into(), 0, ALL)).unwrap();
        records.iter().map(|record| Entry::try_from(record).unwrap()).collect()
    }

    /// The journal of a run leads to its row; of a run without a row there is no journal, and nothing saved.
    fn is_whole_or_gone(&self, processes: u32) {
        for row in &self.rows {
            let mut state: Option<Entity> = None;
            for entry in self.journal(&row.run) {
                let (next, _said) = machine::advance(&EntityId::from(&row.run), state, &entry).unwrap();
                state = Some(next);
            }
            let folded = state.as_ref().and_then(Entity::run).map(|run| RunRow::of(0, run));
            assert_eq!(folded.as_ref(), Some(row), "the row of {} is not the fold of its journal", row.run);
            assert!(!self.half.contains(&EntityId::from(&row.run)), "{} is there, and half removed", row.run);
        }
        let there: BTreeSet<&RunId> = self.rows.iter().map(|row| &row.run).collect();
        for run in all(processes).iter().filter(|run| !there.contains(run)) {
            assert_eq!(self.journal(run), [], "there is no run {run}, and it has a journal");
            assert_eq!(
                self.runtime.block_on(self.store.snapshot(&run.into())).unwrap(),
                None,
                "there is no run {run}, and something of it is saved"
            );
        }
    }

    /// Who is not there any more had come to its end. How many of those there are.
    fn keeps_what_is_not_over(&self, acknowledged: &BTreeSet<String>) -> usize {
        let there: BTreeSet<&str> = self.rows.iter().map(|row| row.run.as_str()).collect();
        let gone: Vec<_> = acknowledged.iter().filter(|run| !there.contains(run.as_str())).collect();
        for run in &gone {
            assert!(self.at_their_end.contains(*run), "the start of {run} was acknowledged, it has not ended, and it is gone");
        }
        gone.len()
    }
}

/// Every run that so many processes may have started.
fn all(processes: u32) -> Vec<RunId> {
    let again = (0..removed::AGAIN).map(|n| format!("again-{n}"));
    let own = (1..=processes).flat_map(|process| (0..removed::BRIEF).map(move |n| format!("brief-{process}-{n}")));
    again.chain(own).map(|id| RunId::new(id).unwrap()).collect()
}
