//! Runs come into memory: read, folded, and hosted if something asks for it. Reading goes on beside the shard's other work.

use super::{Ask, Done, Memory, Pending, Shard, Then};
use crate::error::{Error, STORE_RETRY_AFTER};
use crate::timers::Order;
use futures_util::FutureExt;
use std::sync::Arc;
use steadfast_kernel::{Entry, Run, RunId, run};
use steadfast_store::Store;

/// How many entries are read at once.
const PAGE: usize = 1000;

impl Shard {
    /// Begins to read a run; `first` and what comes meanwhile is taken up when it is there.
    pub(super) fn load(&mut self, id: RunId, first: Ask) {
        if self.slot(&id).changed > self.committed.seq {
            let pending = Pending { seq: self.state.submitted, run: id, then: Then::Ask(first) }; // the store does not have all of it yet
            return self.state.pending.push_back(pending);
        }
        self.slot(&id).memory = Memory::Loading(vec![first]);
        let store = Arc::clone(&self.store);
        let read = async move {
            let result = read(&*store, &id).await;
            Done::Loaded { run: id, result }
        };
        self.state.tasks.push(read.boxed());
    }

    /// Goes on with runs that had work under way when the process ended.
    pub(crate) fn resume(&mut self, runs: Vec<RunId>) {
        self.state.submitted = self.committed.seq;
        if !runs.is_empty() {
            tracing::info!(shard = self.id, runs = runs.len(), "going on with runs that were under way");
        }
        for run in runs {
            self.ask(run, Ask::Resume);
        }
    }

    pub(super) fn done(&mut self, done: Done) {
        match done {
            Done::Loaded { run, result } => self.loaded(&run, result),
            Done::Healed(result) => self.healed(result),
        }
    }

    fn loaded(&mut self, id: &RunId, result: Result<Option<(Run, Vec<Entry>)>, Error>) {
        let over = matches!(self.state.health, super::Health::Over(_));
        let slot = self.slot(id);
        let Memory::Loading(waiting) = std::mem::take(&mut slot.memory) else { return };
        match result {
            Ok(_) if over => waiting.into_iter().for_each(|ask| self.ask(id.clone(), ask)), // they are turned away
            Ok(found) => {
                let hosted = slot.session.is_some() || slot.blocked.is_some();
                let open = !hosted && found.as_ref().is_some_and(|(run, _)| waiting.iter().any(|ask| ask.needs_host(run)));
                self.remember(id, found, open);
                for ask in waiting {
                    self.ask(id.clone(), ask);
                }
            }
            Err(error) if error.is_retryable() => {
                tracing::warn!(run = %id, %error, "the run cannot be read; trying again");
                self.load_later(id, waiting);
            }
            Err(error) => {
                waiting.into_iter().for_each(|ask| ask.fail(&error));
                self.set_aside(id, error.to_string());
            }
        }
        self.tidy(id);
    }

    fn remember(&mut self, id: &RunId, found: Option<(Run, Vec<Entry>)>, open: bool) {
        let Some((run, journal)) = found else {
            self.slot(id).memory = Memory::Ready(None);
            return;
        };
        let (timers, ended) = (run.timers(), run.ended().is_some());
        self.slot(id).memory = Memory::Ready(Some(run));
        if ended {
            return self.see_off(id);
        }
        if open {
            self.open(id, journal);
            for timer in timers {
                let _keeper_is_gone = self.ports.timers.send(Order::Arm(timer)); // what a lost session was told, a new one is told again
            }
        }
    }

    fn load_later(&mut self, id: &RunId, waiting: Vec<Ask>) {
        self.slot(id).memory = Memory::Loading(waiting);
        let (store, clock, id) = (Arc::clone(&self.store), Arc::clone(&self.clock), id.clone());
        let read = async move {
            clock.sleep(STORE_RETRY_AFTER).await;
            let result = read(&*store, &id).await;
            Done::Loaded { run: id, result }
        };
        self.state.tasks.push(read.boxed());
    }
}

impl Ask {
    fn fail(self, error: &Error) {
        match self {
            Ask::Command(_, from) => from.fail(error.clone()),
            Ask::Await(reply) => drop(reply.send(Err(error.clone()))),
            Ask::View(reply) => drop(reply.send(Err(error.clone()))),
            Ask::Resume => {}
        }
    }
}

/// Reads and folds a journal; nothing if there is none.
async fn read(store: &dyn Store, id: &RunId) -> Result<Option<(Run, Vec<Entry>)>, Error> {
    let broken = |why: String| Error::JournalBroken { run: id.clone(), why };
    let (mut state, mut journal): (Option<Run>, Vec<Entry>) = (None, Vec::new());
    loop {
        let after = journal.last().map_or(0, |entry| entry.seq);
        let page = store.journal(id, after, PAGE).await.map_err(Error::from_store)?;
        for record in &page {
            let entry = Entry::try_from(record).map_err(|unreadable| broken(unreadable.to_string()))?;
            state = Some(run::evolve(id, state, &entry).map_err(|illegal| broken(illegal.to_string()))?);
            journal.push(entry);
        }
        if page.len() < PAGE {
            return Ok(state.map(|run| (run, journal)));
        }
    }
}
