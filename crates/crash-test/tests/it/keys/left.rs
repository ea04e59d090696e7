//! What a process left behind of its keys.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use steadfast::{Clock, SystemClock};
use steadfast_crash_test::keys::calls::{self, Call};
use steadfast_kernel::{Entity, EntityId, Entry, Key, KeyName, LetterAbout, Revision, Timer, Timestamp, machine};
use steadfast_store::{CallbackFilter, CallbackRow, KeyRow, LetterRow, RunFilter, RunRow, Store};
use steadfast_store_embedded::Embedded;

/// More than there is of anything.
const ALL: usize = 100_000;

pub(super) struct Left {
    pub(super) process: u32,
    /// When it was read.
    pub(super) read_at: Timestamp,
    pub(super) rows: Vec<KeyRow>,
    pub(super) callbacks: Vec<CallbackRow>,
    pub(super) letters: Vec<LetterRow>,
    pub(super) timers: Vec<Timer>,
    pub(super) runs: Vec<RunRow>,
    /// Every name, and what is kept of its journal.
    pub(super) journals: BTreeMap<KeyName, Vec<Entry>>,
    /// Names of which something is saved.
    pub(super) saved: BTreeSet<KeyName>,
    /// Who was told of what, in order.
    pub(super) calls: Vec<Call>,
}

impl Left {
    /// Reads a copy, so that the next process finds the original untouched.
    pub(super) fn by<'a>(process: u32, folder: &Path, names: impl Iterator<Item = &'a str>) -> Self {
        let read_at = SystemClock.now();
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(folder.join("data")).into_iter().flatten() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        let store = Embedded::open(copy.path()).expect("what a kill left behind can be opened");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let calls = calls::read(&std::fs::read_to_string(folder.join("log")).unwrap_or_default());
        let names = names.map(|name| KeyName::new(name).unwrap()).collect();
        runtime.block_on(read(&store, process, read_at, names, calls))
    }

    /// What the journal of a key comes to; nothing if none is kept.
    pub(super) fn fold(&self, name: &KeyName) -> Option<Key> {
        let mut state: Option<Entity> = None;
        for entry in &self.journals[name] {
            let next = machine::advance(&EntityId::Key(name.clone()), state, entry);
            let (next, _said) = next.unwrap_or_else(|illegal| panic!("{illegal}\n{:#?}", self.journals[name]));
            state = Some(next);
        }
        state.as_ref().and_then(Entity::key).cloned()
    }

    /// An end is still to be told, or a dead letter. Of a directory that was deleted nobody is told; what waits then is that the keys below it are gone.
    pub(super) fn is_pending(&self, key: &str, revision: Revision) -> bool {
        let about = |letter: &LetterRow| matches!(&letter.about, LetterAbout::Expiry { key: of, revision: its } if of.as_str() == key && *its == revision);
        let waits = |row: &CallbackRow| row.key.as_str() == key && row.revision == revision && row.target != "keys below";
        self.letters.iter().any(about) || self.callbacks.iter().any(waits)
    }

    /// The key of that name, if there is one, whether or not its time is over.
    pub(super) fn row(&self, key: &str) -> Option<&KeyRow> {
        self.rows.iter().find(|row| row.key.as_str() == key && row.ended_at.is_none())
    }

    /// Whether a directory above that key has ended with it, and a kill came before whoever ends the keys below it had got to this one: nobody is shown it any more.
    pub(super) fn has_ended_with_its_directory(&self, row: &KeyRow) -> bool {
        let is_above = |above: &KeyRow| row.key.as_str().starts_with(&above.key.below());
        self.rows.iter().any(|above| is_above(above) && above.ends(row, self.read_at))
    }

    /// The run of an expiry.
    pub(super) fn run(&self, key: &str, revision: Revision) -> Option<&RunRow> {
        let id = format!("expired/{key}/{revision}");
        self.runs.iter().find(|row| row.run.as_str() == id)
    }
}

async fn read(store: &Embedded, process: u32, read_at: Timestamp, names: Vec<KeyName>, calls: Vec<Call>) -> Left {
    let (mut journals, mut saved) = (BTreeMap::new(), BTreeSet::new());
    for name in names {
        let id = EntityId::Key(name.clone());
        let records = store.journal(&id, 0, ALL).await.unwrap();
        if store.snapshot(&id).await.unwrap().is_some() {
            saved.insert(name.clone());
        }
        journals.insert(name, records.iter().map(|record| Entry::try_from(record).unwrap()).collect());
    }
    Left {
        process,
        read_at,
        rows: store.keys_below("", None, ALL).await.unwrap(),
        callbacks: store.callbacks(&CallbackFilter::default(), None, ALL).await.unwrap(),
        letters: store.letters(&steadfast_store::LetterFilter::default(), None, ALL).await.unwrap(),
        timers: store.timers(0, None, ALL).await.unwrap(),
        runs: store.runs(&RunFilter::default(), None, ALL).await.unwrap(),
        journals,
        saved,
        calls,
    }
}
