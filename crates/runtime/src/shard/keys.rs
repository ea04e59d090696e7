//! Keys in the shard: their ends are told, lane by lane, and what is left of them is forgotten.
//!
//! What is told is on record: an end that nobody was told of yet is found in the store, by its row or by its timer. So a crash, another leader or a full lane lose nothing,
//! and an attempt whose report cannot be written is reported again.
//!
//! Tested by `crates/sdk/tests/it/keys/crashes.rs`.
//! Tested by `crates/sdk/tests/it/keys/faults.rs`.
//! Tested by `crates/sdk/tests/it/keys/journals.rs`.
//! Tested by `crates/sdk/tests/it/keys/roles.rs`.
//! Tested by `crates/crash-test/tests/it/keys/mod.rs`.

use super::{Ask, Done, Follow, From, Memory, Shard, Then};
use crate::callbacks::{Errand, How, Lane};
use crate::error::{Error, STORE_RETRY_AFTER};
use crate::timers::Role;
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{
    Attempt, Callback, Class, Command, Effect, EntityId, Failure, KeyName, ReportCallback, Revision, RunId, Target, Timer, TimerName,
    Timestamp,
};
use steadfast_store::{Batch, CallbackCursor, CallbackFilter, CallbackRow, Forgotten, ShardId, Store, TimerChange};

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

impl Told {
    fn how(&self) -> How {
        match &self.outcome {
            Ok(_) => How::Well,
            Err(failure) if failure.class == Class::Transient => How::Sick,
            Err(_) => How::Neither,
        }
    }
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
        let (lane, errand) = (self.courier.lane(key, callback, false), Errand::of(key, callback));
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

    /// Begins an errand; what it is about is read first if it was let go.
    fn begin(&mut self, lane: Lane, errand: Errand) {
        if self.state.lanes.is_held() {
            return self.give_back(&lane, &errand);
        }
        match &errand.callback {
            None => self.ask(EntityId::Key(errand.key.clone()), Ask::Tell(lane, errand)),
            Some(callback) if callback.below.is_some() && !errand.walked => {
                let walk = self.courier.walk(&errand.key, callback);
                let walked = walk.map(move |outcome| Done::Walked(Box::new((lane, errand, outcome))));
                self.state.tasks.push(walked.boxed());
            }
            Some(callback) => {
                let telling = self.courier.attempt(&errand.key, callback);
                let Errand { key, revision, attempt, .. } = errand;
                let told = telling.map(move |outcome| Done::Told(Box::new(Told { key, revision, attempt, lane, outcome })));
                self.state.tasks.push(told.boxed());
            }
        }
    }

    /// What an errand is about was read.
    pub(super) fn tell_of(&mut self, id: &EntityId, lane: Lane, errand: &Errand) {
        match self.pending(id, errand.revision, errand.attempt) {
            Some((key, callback)) => {
                let errand = Errand { walked: errand.walked, ..Errand::of(key, callback) };
                self.begin(lane, errand);
            }
            None => self.give_back(&lane, errand), // somebody has dealt with it
        }
    }

    /// An errand cannot be run now. If it is still to be run, the store knows it.
    pub(super) fn give_back(&mut self, lane: &Lane, errand: &Errand) {
        self.state.lanes.forget(&errand.key, errand.revision);
        self.finished(lane, How::Neither);
    }

    /// The next one in that lane has its turn, once what is being done now is done: of those that wait there may be so many that one calling the next would not end well.
    fn finished(&mut self, lane: &Lane, how: How) {
        let next = self.state.lanes.finished(lane, how);
        self.state.turns.extend(next.into_iter().map(|next| (lane.clone(), next)));
    }

    /// Begins what has its turn.
    pub(super) fn take_turns(&mut self) {
        while let Some((lane, errand)) = self.state.turns.pop_front() {
            self.begin(lane, errand);
        }
    }

    /// The keys below a directory have ended; who is to be told of its own end is told in a lane of its own.
    pub(super) fn walked(&mut self, (lane, errand, outcome): (Lane, Errand, Result<(), Failure>)) {
        let Errand { key, revision, attempt, .. } = &errand;
        let told = |outcome| Told { key: key.clone(), revision: *revision, attempt: *attempt, lane: lane.clone(), outcome };
        match (outcome, errand.callback.as_deref()) {
            (Err(failure), _) => self.told(told(Err(failure))),
            (Ok(()), Some(callback)) if callback.target.is_some() => {
                let next = self.courier.lane(key, callback, true);
                let errand = Errand { walked: true, ..errand };
                if let Some(first) = self.state.lanes.pass_on(&next, errand) {
                    self.state.turns.push_back((next, first));
                }
                self.finished(&lane, How::Neither);
            }
            (Ok(()), _) => self.told(told(Ok(None))),
        }
    }

    /// An attempt is over: it is put on record, and the next one in its lane begins; after a failure that may pass, not before that is on record.
    pub(super) fn told(&mut self, told: Told) {
        let (lane, how) = (told.lane.clone(), told.how());
        self.report_told(told);
        if how != How::Sick {
            self.finished(&lane, how);
        }
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
        if told.how() == How::Sick {
            self.finished(&told.lane, How::Sick);
        }
    }

    /// There is a handler where there was none.
    pub(super) fn call_handlers(&mut self) {
        for errand in self.state.lanes.unhandled() {
            let handler = self.courier.lane_to(&errand.key, &Target::Handler);
            self.send(handler, errand);
        }
    }

    /// The role of this instance has changed.
    pub(crate) fn change_role(&mut self) {
        self.ports.role.mark_unchanged();
        self.tell_or_not();
    }

    /// Ends are told while this instance leads, the store can be written, and nobody stops it. What it did not get to is found in the store by the next one who may; those that
    /// were tried before have timers.
    pub(super) fn tell_or_not(&mut self) {
        let leads = matches!(*self.ports.role.borrow(), Role::Leader { .. });
        if !leads || self.state.is_draining() || !matches!(self.state.health, super::Health::Well) {
            return self.state.lanes.hold();
        }
        self.state.lanes.go_on();
        self.read_callbacks();
    }

    /// Asks the store which ends nobody was told of yet.
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

    pub(super) fn callbacks_read(&mut self, result: Result<Vec<CallbackRow>, Error>) {
        let rows = match result {
            Ok(rows) => rows,
            Err(error) => {
                return tracing::error!(shard = self.id, %error, "ends of keys cannot be read; they are told after the next start");
            }
        };
        if !rows.is_empty() {
            tracing::info!(shard = self.id, callbacks = rows.len(), "going on to tell of the ends of keys");
        }
        for row in rows {
            let lane = self.courier.lane_of(&row);
            let CallbackRow { key, revision, attempt, .. } = row;
            self.send(lane, Errand { key, revision, attempt, callback: None, walked: false });
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

/// The ends whose first attempt was not over.
async fn unheard(store: &dyn Store, shard: ShardId) -> Result<Vec<CallbackRow>, Error> {
    let filter = CallbackFilter { shard: Some(shard), first: true, ..CallbackFilter::default() };
    let mut rows: Vec<CallbackRow> = Vec::new();
    loop {
        let after = rows.last().map(CallbackCursor::from);
        let page = store.callbacks(&filter, after.as_ref(), PAGE).await.map_err(Error::from_store)?;
        let last = page.len() < PAGE;
        rows.extend(page);
        if last {
            return Ok(rows);
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
