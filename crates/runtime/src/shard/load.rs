//! Runs come into memory: read, folded, and hosted if something asks for it. Reading goes on beside the shard's other work.
//!
//! Tested by `crates/sdk/tests/it/crashes.rs`.
//! Tested by `crates/sdk/tests/it/interrupted.rs`.
//! Tested by `crates/crash-test/tests/it/main.rs`.

use super::read::{Found, Reader};
use super::{Ask, Done, From, Memory, Pending, Shard, Then};
use crate::error::{Error, STORE_RETRY_AFTER};
use crate::host::ToHost;
use crate::timers::Order;
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::run::Recover;
use steadfast_kernel::{Command, Completion, EntityId, Entry, Event, PlanId, run};
use steadfast_store::{RunCursor, RunRow, ShardId, Store};

/// How many rows are read at once.
const PAGE: usize = 1000;

impl Shard {
    /// Begins to read an entity; `first` and what comes meanwhile is taken up when it is there.
    pub(super) fn load(&mut self, id: EntityId, first: Ask) {
        if self.seat(&id).changed > self.committed.seq {
            let pending = Pending { seq: self.state.submitted, id, then: Then::Ask(first) }; // the store does not have all of it yet
            return self.state.pending.push_back(pending);
        }
        let to_replay = self.seat(&id).session.is_some() || first.may_need_host();
        self.seat(&id).memory = Memory::Loading(vec![first]);
        self.read(id, to_replay, Duration::ZERO);
    }

    /// Reads an entity beside the shard's other work.
    fn read(&mut self, id: EntityId, to_replay: bool, wait: Duration) {
        let (store, clock, snapshot_every) = (Arc::clone(&self.store), Arc::clone(&self.clock), self.config.snapshot_every);
        let is_saved = self.seat(&id).saved.is_something();
        let read = async move {
            if !wait.is_zero() {
                clock.sleep(wait).await;
            }
            let result = Reader { store: &*store, id: &id, snapshot_every, is_saved, to_replay }.read().await;
            Done::Loaded { id, result }
        };
        self.state.tasks.push(read.boxed());
    }

    /// Goes on with runs that had work under way when the shard was last closed. If they were cut off then, those that do not go on by themselves are interrupted, and a worker
    /// may still have one.
    pub(crate) fn resume(&mut self, runs: Vec<RunRow>, cut_off: bool) {
        self.state.submitted = self.committed.seq;
        if cut_off {
            self.take_over();
        }
        if !runs.is_empty() {
            tracing::info!(shard = self.id, runs = runs.len(), "going on with runs that were under way");
        }
        for RunRow { run, recover, wait, .. } in runs {
            let id = EntityId::Run(run);
            match recover {
                Some(Recover::Interrupt) if cut_off => {
                    self.state.to_interrupt.insert(id.clone());
                    self.interrupt(id);
                }
                Some(Recover::Host | Recover::Interrupt) | None => {
                    self.seat(&id).row_says_blocked = wait.is_some(); // a run that has to be hosted waits for nothing else
                    self.ask(id, Ask::Resume);
                }
            }
        }
    }

    /// Pauses plans that were under way when the process ended.
    pub(crate) fn interrupt_all(&mut self, plans: Vec<PlanId>) {
        for plan in plans {
            let id = EntityId::Plan(plan);
            self.state.to_interrupt.insert(id.clone());
            self.interrupt(id);
        }
    }

    /// Records that a run or a plan does not go on by itself.
    pub(super) fn interrupt(&mut self, id: EntityId) {
        let command = if matches!(id, EntityId::Plan(_)) { Command::InterruptPlan } else { Command::InterruptRun };
        self.ask(id, Ask::Command(Box::new(command), From::Restart));
    }

    pub(super) fn loaded(&mut self, id: &EntityId, result: Result<Option<Found>, Error>) {
        let over = matches!(self.state.health, super::Health::Over(_));
        let seat = self.seat(id);
        let Memory::Loading(waiting) = std::mem::take(&mut seat.memory) else { return };
        match result {
            Ok(_) if over => waiting.into_iter().for_each(|ask| self.ask(id.clone(), ask)), // they are turned away
            Ok(found) => {
                self.note_doubted(id, found.as_ref().map(|found| &found.entity));
                let seat = self.seat(id);
                let run = found.as_ref().and_then(|found| found.entity.run());
                if run.is_some_and(|run| seat.session.as_ref().is_some_and(|session| session.epoch != run.epoch)) {
                    self.close(id); // another life has begun by a commit of ours that was said to have failed
                }
                let seat = self.seat(id);
                let hosted = seat.session.is_some() || seat.blocked.is_some() || self.state.to_interrupt.contains(id);
                let open = !hosted && run.is_some_and(|run| waiting.iter().any(|ask| ask.needs_host(run)));
                self.remember(id, found, open);
                for ask in waiting {
                    self.ask(id.clone(), ask);
                }
            }
            Err(error) if error.is_retryable() => {
                tracing::warn!(entity = %id, %error, "it cannot be read; trying again");
                self.load_later(id, waiting);
            }
            Err(error) => {
                for ask in waiting {
                    match ask {
                        Ask::Tell(lane, errand) => self.give_back(&lane, &errand),
                        Ask::Command(_, From::Courier(told)) => self.on_record(&told), // it never will be
                        ask => ask.fail(&error),
                    }
                }
                self.set_aside(id, error.to_string());
            }
        }
        self.tidy(id);
    }

    fn remember(&mut self, id: &EntityId, found: Option<Found>, open: bool) {
        let Some(Found { entity, journal, saved }) = found else {
            self.seat(id).memory = Memory::Ready(None);
            return;
        };
        self.seat(id).saved = saved;
        let timers = entity.run().map(steadfast_kernel::Run::timers).unwrap_or_default();
        let ended = entity.run().is_some_and(|run| run.ended().is_some());
        let (script, journal) = match (entity.run(), journal) {
            (Some(run), Some(journal)) if open => (Some(run::script_from(run, journal)), None),
            (_, journal) => (None, journal),
        };
        self.seat(id).memory = Memory::Ready(Some(entity));
        if ended {
            return self.see_off(id);
        }
        if let Some(journal) = journal {
            self.catch_up(id, &journal);
        }
        if let Some(script) = script {
            self.open(id, script); // if it was not read, whoever needs it asks again and has it read
        }
        if std::mem::take(&mut self.seat(id).row_in_doubt) {
            self.write_row(id);
        }
        if self.seat(id).session.is_some() {
            for timer in timers {
                // what a lost session was told, a new one is told again; and what was armed by a commit that was said to have failed, is armed
                let _keeper_is_gone = self.ports.timers.send(Order::Arm(timer));
            }
        }
    }

    /// Tells a session what has arrived by a commit of ours that was said to have failed: nobody else will.
    fn catch_up(&mut self, id: &EntityId, journal: &[Entry]) {
        let seat = self.seat(id);
        let unheard = journal.iter().filter(|entry| entry.seq > seat.told).filter_map(arrival).collect::<Vec<_>>();
        seat.told = journal.last().map_or(0, |entry| entry.seq);
        unheard.into_iter().flatten().for_each(|message| seat.tell(message));
    }

    fn load_later(&mut self, id: &EntityId, waiting: Vec<Ask>) {
        let to_replay = self.seat(id).session.is_some() || waiting.iter().any(Ask::may_need_host);
        self.seat(id).memory = Memory::Loading(waiting);
        self.read(id.clone(), to_replay, STORE_RETRY_AFTER);
    }
}

impl Ask {
    /// True if it may lead to something only a host can do.
    fn may_need_host(&self) -> bool {
        matches!(self, Ask::Command(..) | Ask::Resume)
    }

    pub(super) fn fail(self, error: &Error) {
        match self {
            Ask::Command(_, from) => from.fail(error.clone()),
            Ask::Await(waiter) => waiter.fail(error.clone()),
            Ask::Look(look) => look.fail(error.clone()),
            Ask::Resume | Ask::Tell(..) | Ask::CallBack(..) => {}
        }
    }
}

/// What a session is told when that has come in from outside.
fn arrival(entry: &Entry) -> Option<Vec<ToHost>> {
    Some(match &entry.event {
        Event::SignalReceived { name, payload, .. } => {
            let (name, payload) = (name.clone(), payload.clone());
            vec![ToHost::Deliver(Box::new(Completion::SignalReceived { signal: entry.seq, name, payload }))]
        }
        Event::ChildEnded { child, outcome } => {
            vec![ToHost::Deliver(Box::new(Completion::ChildEnded { child: child.clone(), outcome: outcome.clone() }))]
        }
        Event::RunPaused { .. } => vec![ToHost::Pause],
        Event::RunResumed { .. } => vec![ToHost::Resume],
        Event::RunCancelRequested { undo, .. } => {
            vec![ToHost::Deliver(Box::new(Completion::Stopped { failure: None, undo: *undo })), ToHost::Resume]
        }
        _ => return None,
    })
}

/// Every run that a restart has something to do with: those that only wait are opened when what they wait for happens.
pub(crate) async fn under_way(store: &dyn Store, shard: ShardId) -> Result<Vec<RunRow>, Error> {
    let mut runs: Vec<RunRow> = Vec::new();
    loop {
        let page = store
            .to_recover(shard, runs.last().map(RunCursor::from).as_ref(), PAGE)
            .await
            .map_err(Error::from_store)?;
        if page.is_empty() {
            return Ok(runs);
        }
        runs.extend(page);
    }
}
