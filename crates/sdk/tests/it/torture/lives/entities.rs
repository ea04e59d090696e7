//! Entities as they are in the store: their journals, folded.

use futures_util::FutureExt;
use std::collections::BTreeMap;
use steadfast::memory::Memory;
use steadfast::{Entry, Event, StepId};
use steadfast_kernel::{Entity, EntityId, Envelope, Origin, Run, Seq, machine};
use steadfast_store::Store;

/// An entity and everything that became of it.
pub(super) struct Life {
    pub(super) id: EntityId,
    pub(super) entries: Vec<Entry>,
    /// The fold of its entries.
    pub(super) state: Option<Entity>,
    /// Of a limit: how many slots were ever held at once.
    pub(super) held_most: usize,
    /// All that it has told others.
    pub(super) said: Vec<Envelope>,
    /// The idempotency keys of recorded successes, and where they stand.
    pub(super) succeeded: BTreeMap<String, Vec<Seq>>,
    /// Sleeps and waits that were over before their time.
    pub(super) early: Vec<StepId>,
}

/// The fold panics at an entry that cannot come next, and at a gap.
pub(super) fn life(store: &Memory, id: &EntityId) -> Life {
    let records = store.journal(id, 0, 100_000).now_or_never().expect("memory does not wait").unwrap_or_default();
    let entries: Vec<Entry> = records.iter().map(|record| Entry::try_from(record).unwrap()).collect();
    let mut life = Life {
        id: id.clone(),
        entries: Vec::new(),
        state: None,
        held_most: 0,
        said: Vec::new(),
        succeeded: BTreeMap::new(),
        early: Vec::new(),
    };
    for entry in entries {
        if let Some(Entity::Run(run)) = &life.state {
            let done = match &entry.event {
                Event::StepCompleted { step, .. } => Some(step.clone()),
                Event::UndoCompleted { step, .. } => Some(step.undo()),
                _ => None,
            };
            let key = done.map(|step| run.generations.key(&run.id, &step));
            key.into_iter().for_each(|key| life.succeeded.entry(key).or_default().push(entry.seq));
            life.early.extend(early(run, &entry));
        }
        let advanced = machine::advance(id, life.state.take(), &entry);
        let (state, said) = advanced.unwrap_or_else(|illegal| panic!("{illegal}\n{:#?}", life.lines()));
        if let Entity::Limit(limit) = &state {
            life.held_most = life.held_most.max(limit.held());
        }
        life.state = Some(state);
        life.said.extend(said);
        life.entries.push(entry);
    }
    life
}

/// The sleep or wait that the entry says is over, if it is not: the time that a run stands still does not count.
fn early(run: &Run, entry: &Entry) -> Option<StepId> {
    let (Event::TimerFired { sleep }, Some(open)) = (&entry.event, run.open()) else { return None };
    let due = open.sleeps.get(sleep).map(|sleep| sleep.due_at).or_else(|| open.awaits.get(sleep)?.until);
    due.filter(|due| *due > entry.at).map(|_| sleep.clone())
}

impl Life {
    pub(super) fn run(&self) -> Option<&Run> {
        self.state.as_ref().and_then(Entity::run)
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let line = |entry: &Entry| {
            format!("{} {} e{} {}", entry.at.as_micros() % 1_000_000_000, entry.seq, entry.epoch, steadfast::testing::Journal::line(entry))
        };
        self.entries.iter().map(line).collect()
    }

    /// What people wanted, and why.
    pub(super) fn origins(&self) -> impl Iterator<Item = &Origin> {
        self.entries.iter().filter_map(origin)
    }

    /// Where that order is on record, the last time.
    pub(super) fn ordered(&self, tag: &str) -> Option<Seq> {
        let is_it = |entry: &&Entry| origin(entry).is_some_and(|origin| origin.why.as_deref() == Some(tag));
        self.entries.iter().rfind(is_it).map(|entry| entry.seq)
    }
}

/// Who wanted what the entry records, and why.
fn origin(entry: &Entry) -> Option<&Origin> {
    match &entry.event {
        Event::RunPaused { origin }
        | Event::RunResumed { origin }
        | Event::RunCancelRequested { origin, .. }
        | Event::LetterDropped { origin, .. } => Some(origin),
        Event::RunRetried(retried) => Some(&retried.origin),
        _ => None,
    }
}
