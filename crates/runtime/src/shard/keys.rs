//! Keys in the shard: their ends are told, lane by lane, and what is left of them is forgotten.
//!
//! What is told is on record: an end that nobody was told of yet is found in the store, by its row or by its timer. So a crash, another leader or a full lane lose nothing,
//! and an attempt whose report cannot be written is reported again.

use super::{Ask, Done, Follow, From, Memory, Shard, Then};
use crate::callbacks::{Errand, Lane};
use crate::error::{Error, STORE_RETRY_AFTER};
use crate::timers::Role;
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{
    Attempt, Callback, Command, Effect, EntityId, Failure, KeyName, ReportCallback, Revision, RunId, Target, Timer, TimerName, Timestamp,
};
use steadfast_store::{Batch, CallbackChange, CallbackCursor, CallbackFilter, CallbackRow, Forgotten, ShardId, Store, TimerChange};

/// How many ends are read at once.
const PAGE: usize = 1000;

/// What became of an attempt.
#[derive(Clone)]
pub(super) struct Told {
    key: KeyName,
    revision: Revision,
    attempt: Attempt,
    lane: Lane,
    outcome: Result<Option<RunId>, Failure>,
}

impl Shard {
    /// Says what the shard knows: the number that a change would have, and whether there is a handler.
    pub(super) fn complete_for(&self, key: &KeyName, command: &mut Command) {
        let (revision, handled) = (self.state.submitted + 1, || self.courier.handlers.has(key.as_str()));
        match command {
            Command::PutKey(put) => (put.revision, put.handled) = (revision, handled()),
            Command::RenewKey(renew) => renew.revision = revision,
            Command::ExpireKey(expire) => expire.handled = handled(),
            Command::EndKey(end) => end.handled = handled(),
            _ => {}
        }
    }

    /// An end is to be told now, or when it is its turn. A key that was let go since that was decided is read first: it takes one thing after the other that follows a
    /// commit, and may be let go in between.
    pub(super) fn call_back(&mut self, id: &EntityId, revision: Revision, attempt: Attempt) {
        if !self.state.seats.get(id).is_some_and(|seat| matches!(seat.memory, Memory::Ready(_))) {
            return self.ask(id.clone(), Ask::CallBack(revision, attempt));
        }
        let Some((key, callback)) = self.pending(id, revision, attempt) else { return };
        let (lane, errand) = (self.courier.lane(key, callback.target.as_ref()), Errand::of(key, callback));
        self.send(lane, errand);
    }

    /// The end of that revision that is to be told, if it is still the turn of that attempt.
    fn pending<'a>(&'a self, id: &'a EntityId, revision: Revision, attempt: Attempt) -> Option<(&'a KeyName, &'a Callback)> {
        let Memory::Ready(Some(entity)) = &self.state.seats.get(id)?.memory else { return None };
        let callback = entity.key()?.callbacks.get(&revision).filter(|callback| callback.attempt == attempt)?;
        Some((id.key()?, callback))
    }

    fn send(&mut self, lane: Lane, errand: Errand) {
        if let Some(first) = self.state.lanes.add(&lane, errand) {
            self.begin(lane, first);
        }
    }

    /// Begins an attempt; what it is about is read first if it was let go.
    fn begin(&mut self, lane: Lane, errand: Errand) {
        let Errand { key, revision, attempt, callback } = errand;
        match callback {
            None => self.ask(EntityId::Key(key.clone()), Ask::Tell(lane, Errand { key, revision, attempt, callback: None })),
            Some(callback) => {
                let telling = self.courier.attempt(&key, &callback);
                let told = telling.map(move |outcome| Done::Told(Box::new(Told { key, revision, attempt, lane, outcome })));
                self.state.tasks.push(told.boxed());
            }
        }
    }

    /// What an errand is about was read.
    pub(super) fn tell_of(&mut self, id: &EntityId, lane: Lane, errand: &Errand) {
        match self.pending(id, errand.revision, errand.attempt) {
            Some((key, callback)) => {
                let errand = Errand::of(key, callback);
                self.begin(lane, errand);
            }
            None => self.give_back(&lane, errand), // somebody has dealt with it
        }
    }

    /// An errand cannot be run now. If it is still to be run, the store knows it.
    pub(super) fn give_back(&mut self, lane: &Lane, errand: &Errand) {
        self.state.lanes.forget(&errand.key, errand.revision);
        self.finished(lane);
    }

    fn finished(&mut self, lane: &Lane) {
        if let Some(next) = self.state.lanes.finished(lane) {
            self.begin(lane.clone(), next);
        }
    }

    /// An attempt is over: it is put on record, and the next one in its lane begins.
    pub(super) fn told(&mut self, told: Told) {
        let lane = told.lane.clone();
        self.report_told(told);
        self.finished(&lane);
    }

    fn report_told(&mut self, told: Told) {
        let Told { key, revision, attempt, outcome, .. } = told.clone();
        if let Err(failure) = &outcome {
            tracing::debug!(%key, revision, attempt, code = failure.code.as_str(), "an expiry could not be told");
        }
        let policy = self.config.callbacks.policy.clone();
        let command = Command::ReportCallback(ReportCallback { revision, attempt, outcome, policy });
        self.ask(EntityId::Key(key), Ask::Command(Box::new(command), From::Courier(Box::new(told))));
    }

    /// What became of it could not be written: again in a while, whatever comes of the store.
    pub(super) fn report_later(&mut self, told: Told) {
        let wait = self.clock.sleep(STORE_RETRY_AFTER);
        self.state.tasks.push(wait.map(move |()| Done::ToldAgain(Box::new(told))).boxed());
    }

    pub(super) fn told_again(&mut self, told: Told) {
        match self.state.health {
            super::Health::Over(_) => self.on_record(&told), // it never will be: somebody else has the shard
            super::Health::Well | super::Health::Healing(_) => self.report_told(told),
        }
    }

    /// What became of it is on record, or nobody wants to know any more.
    pub(super) fn on_record(&mut self, told: &Told) {
        self.state.lanes.forget(&told.key, told.revision);
    }

    /// There is a handler where there was none.
    pub(super) fn call_handlers(&mut self) {
        for errand in self.state.lanes.unhandled() {
            let lane = self.courier.lane(&errand.key, Some(&Target::Handler));
            self.send(lane, errand);
        }
    }

    /// Only a leader tells of ends. What it did not get to, the next one finds in the store; those that were tried before have timers.
    pub(crate) fn change_role(&mut self) {
        let role = *self.ports.role.borrow_and_update();
        match role {
            Role::Follower => self.state.lanes.hold(),
            Role::Leader { .. } if self.state.is_draining() => {}
            Role::Leader { .. } => {
                self.state.lanes.go_on();
                self.read_callbacks();
            }
        }
    }

    /// Asks the store which ends nobody was told of yet, and how many there are in all.
    pub(super) fn read_callbacks(&mut self) {
        let (store, clock, shard) = (Arc::clone(&self.store), Arc::clone(&self.clock), self.id);
        let read = async move {
            loop {
                match unheard(&*store, shard).await {
                    Err(error) if error.is_retryable() => clock.sleep(STORE_RETRY_AFTER).await,
                    result => return Done::Callbacks(result),
                }
            }
        };
        self.state.tasks.push(read.boxed());
    }

    pub(super) fn callbacks_read(&mut self, result: Result<Unheard, Error>) {
        let Unheard { rows, count } = match result {
            Ok(unheard) => unheard,
            Err(error) => {
                return tracing::error!(shard = self.id, %error, "ends of keys cannot be read; they are told after the next start");
            }
        };
        self.state.callbacks = count;
        if !rows.is_empty() {
            tracing::info!(shard = self.id, callbacks = rows.len(), "going on to tell of the ends of keys");
        }
        for row in rows {
            let lane = self.courier.lane_of(&row);
            let CallbackRow { key, revision, attempt, .. } = row;
            self.send(lane, Errand { key, revision, attempt, callback: None });
        }
    }

    /// How many ends are to be told after these changes.
    pub(super) fn count_callbacks(&mut self, changes: &[CallbackChange]) {
        for change in changes {
            match change {
                CallbackChange::Put(row) if row.next_at.is_none() => self.state.callbacks += 1,
                CallbackChange::Put(_) => {}
                CallbackChange::Remove(..) => self.state.callbacks = self.state.callbacks.saturating_sub(1),
            }
        }
    }

    /// Nothing is left of an entity that has to be known.
    pub(super) fn forget_all(&mut self, id: &EntityId, from: From) {
        let forgotten = vec![Forgotten { entity: id.clone(), before: None }];
        let timers = vec![TimerChange::Disarm { entity: id.clone(), name: TimerName::Forget }];
        let seq = self.write(id, Batch { forgotten, timers, ..Batch::default() }, Then::Follow(from, Ok(Follow::default())));
        let seat = self.seat(id);
        (seat.memory, seat.changed, seat.saved) = (Memory::Ready(None), seq, super::Saved::default());
    }
}

/// What nobody was told of yet.
pub(super) struct Unheard {
    /// Those whose first attempt was not over.
    rows: Vec<CallbackRow>,
    /// How many there are, with those that were tried before.
    count: u64,
}

async fn unheard(store: &dyn Store, shard: ShardId) -> Result<Unheard, Error> {
    let filter = CallbackFilter { shard: Some(shard), first: true, ..CallbackFilter::default() };
    let mut rows: Vec<CallbackRow> = Vec::new();
    loop {
        let after = rows.last().map(CallbackCursor::from);
        let page = store.callbacks(&filter, after.as_ref(), PAGE).await.map_err(Error::from_store)?;
        let last = page.len() < PAGE;
        rows.extend(page);
        if last {
            let count = store.callbacks_count(shard).await.map_err(Error::from_store)?;
            return Ok(Unheard { rows, count });
        }
    }
}

/// A key that has told all is forgotten after a while: that is a timer.
pub(super) fn retired(id: &EntityId, effect: Effect, now: Timestamp, kept_for: Duration) -> Effect {
    match effect {
        Effect::Retire(revision) => {
            Effect::Arm(Timer { entity: id.clone(), name: TimerName::Forget, due: now.saturating_add(kept_for), revision })
        }
        effect => effect,
    }
}

/// The beginning of a journal that is not needed any more.
pub(super) fn shortened(id: &EntityId, effect: &Effect) -> Option<Forgotten> {
    match effect {
        Effect::Shorten(before) => Some(Forgotten { entity: id.clone(), before: Some(*before) }),
        _ => None,
    }
}
