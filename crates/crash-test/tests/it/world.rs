//! What a process left behind: everything in its store, what was executed, and what was acknowledged.

use crate::RUNS;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use steadfast_crash_test::log::{self, Line};
use steadfast_crash_test::shapes;
use steadfast_kernel::limit::Limit;
use steadfast_kernel::{Entity, EntityId, Entry, Envelope, Event, Run, RunId, Timer, machine, run};
use steadfast_store::{Head, LetterRow, RunFilter, RunRow, ShardId, Store};
use steadfast_store_embedded::Embedded;

/// The one shard of an embedded store.
pub(crate) const SHARD: ShardId = 0;

/// More than there is of anything.
const ALL: usize = 100_000;

pub(crate) struct World {
    /// The process that was killed last.
    pub(crate) process: u32,
    pub(crate) head: Head,
    pub(crate) rows: Vec<RunRow>,
    pub(crate) timers: Vec<Timer>,
    pub(crate) outbox: Vec<Envelope>,
    pub(crate) letters: Vec<LetterRow>,
    /// Everything that has a journal.
    pub(crate) entities: BTreeMap<EntityId, History>,
    /// What was executed, in order.
    pub(crate) log: Vec<Line>,
    /// What all processes said was acknowledged to them.
    pub(crate) acknowledged: BTreeSet<String>,
}

/// A journal and what follows from it.
#[derive(Clone)]
pub(crate) struct History {
    pub(crate) journal: Vec<Entry>,
    /// The state before each entry.
    pub(crate) before: Vec<Option<Entity>>,
    pub(crate) state: Entity,
    /// Everything that was ever said to others.
    pub(crate) said: Vec<Envelope>,
}

impl World {
    pub(crate) fn empty() -> Self {
        let (rows, timers, outbox, letters, log) = (vec![], vec![], vec![], vec![], vec![]);
        let (head, entities, acknowledged) = (Head { term: 0, seq: 0 }, BTreeMap::new(), BTreeSet::new());
        World { process: 0, head, rows, timers, outbox, letters, entities, log, acknowledged }
    }

    /// Reads a copy, so that the next process finds the original untouched.
    pub(crate) fn left_by(process: u32, folder: &Path, before: &World, acknowledged: &[String]) -> Self {
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(folder.join("data")).into_iter().flatten() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        let store = Embedded::open(copy.path()).expect("what a kill left behind can be opened");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut world = runtime.block_on(read(&store, before));
        world.process = process;
        world.log = log::read(&std::fs::read_to_string(folder.join("log")).unwrap_or_default());
        world.acknowledged = before.acknowledged.iter().chain(acknowledged).cloned().collect();
        world
    }

    /// Every run, in the order of their ids.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&Run, &History)> {
        self.entities.values().filter_map(|history| Some((history.state.run()?, history)))
    }

    pub(crate) fn limits(&self) -> impl Iterator<Item = (&Limit, &History)> {
        self.entities.values().filter_map(|history| match &history.state {
            Entity::Limit(limit) => Some((limit, history)),
            _ => None,
        })
    }

    pub(crate) fn run(&self, id: &str) -> Option<(&Run, &History)> {
        let history = self.entities.get(&EntityId::Run(RunId::new(id).unwrap()))?;
        Some((history.state.run()?, history))
    }

    /// Runs that have not ended, and how far they have come.
    pub(crate) fn under_way(&self) -> Vec<String> {
        let open = self.runs().filter(|(run, _)| run.ended().is_none());
        open.map(|(run, history)| format!("{}: {:?} {:?}", run.id, run.status(), history.kinds())).collect()
    }
}

impl History {
    fn of(id: &EntityId, journal: Vec<Entry>, known: Option<&History>) -> Self {
        let mut known = known.filter(|known| journal.starts_with(&known.journal)).cloned();
        let (mut before, mut said) = known
            .as_mut()
            .map(|known| (std::mem::take(&mut known.before), std::mem::take(&mut known.said)))
            .unwrap_or_default();
        let mut state = known.map(|known| known.state);
        for entry in &journal[before.len()..] {
            before.push(state.clone());
            let (next, says) = machine::advance(id, state, entry).unwrap_or_else(|illegal| panic!("{illegal}\n{journal:#?}"));
            said.extend(says);
            state = Some(next);
        }
        History { journal, before, state: state.expect("a journal has entries"), said }
    }

    /// Every entry with the state before it.
    pub(crate) fn moments(&self) -> impl Iterator<Item = (Option<&Entity>, &Entry)> {
        self.before.iter().map(Option::as_ref).zip(&self.journal)
    }

    /// Every entry with the state of the run before it; the first entry is left out.
    pub(crate) fn run_moments(&self) -> impl Iterator<Item = (&Run, &Entry)> {
        self.moments().filter_map(|(before, entry)| Some((before?.run()?, entry)))
    }

    /// What counted of the journal at the end of each life of a run; the last one may not be over.
    pub(crate) fn lives(&self) -> Vec<Vec<Entry>> {
        let opens = |entry: &Entry| matches!(entry.event, Event::RunRetried(_) | Event::RunContinued { .. });
        let ends = (0..self.journal.len()).filter(|at| opens(&self.journal[*at])).chain([self.journal.len()]);
        ends.map(|end| run::script(self.journal[..end].to_vec())).collect()
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        let shown = |entry: &Entry| format!("{} {}", entry.event.kind(), entry.event.subject().map_or("", |subject| subject.as_str()));
        self.journal.iter().map(|entry| shown(entry).trim_end().to_string()).collect()
    }
}

async fn read(store: &Embedded, before: &World) -> World {
    let mut world = World::empty();
    world.head = store.head(SHARD).await.unwrap();
    world.rows = store.runs(&RunFilter::default(), None, ALL).await.unwrap();
    world.timers = store.timers(SHARD, None, ALL).await.unwrap();
    world.outbox = store.outbox(SHARD, None, ALL).await.unwrap();
    world.letters = store.letters(&steadfast_store::LetterFilter::default(), None, ALL).await.unwrap();
    let mut ids: Vec<EntityId> = (0..RUNS).map(|n| EntityId::Run(RunId::new(shapes::id(n)).unwrap())).collect();
    ids.extend(world.rows.iter().map(|row| EntityId::from(&row.run)));
    ids.extend(before.entities.keys().cloned());
    let mut seen = BTreeSet::new();
    while let Some(id) = ids.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        let records = store.journal(&id, 0, ALL).await.unwrap();
        let journal: Vec<Entry> = records.iter().map(|record| Entry::try_from(record).unwrap()).collect();
        if journal.is_empty() {
            continue; // whether it may be is for the facts to say
        }
        let history = History::of(&id, journal, before.entities.get(&id));
        ids.extend(history.said.iter().map(|envelope| envelope.to.clone()));
        world.entities.insert(id, history);
    }
    world
}
