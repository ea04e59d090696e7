//! What follows a commit: effects and answers. Nothing here is durable; what a crash loses is derived again from state.
//!
//! Tested by `crates/crash-test/tests/it/facts/nothing_begins_before_it_is_recorded.rs`.

use super::decide::not_found;
use super::view::{Look, row};
use super::{Ask, Closing, Follow, From, Health, Memory, Pending, Seat, Session, Shard, Then, Waiter};
use crate::committer::Outcome;
use crate::error::Error;
use crate::host::{Nobody, Opening, RunEnded, ToHost};
use crate::timers::Order;
use std::sync::Arc;
use steadfast_kernel::{Answer, CancelRun, Command, Completion, Effect, Entity, EntityId, Entry, Envelope, Event, Origin, Refusal, Wait};
use steadfast_store::Batch;

/// A host that is out of date this often in a row does not get right by replaying again.
const STALE_MAX: u32 = 5;

impl Shard {
    /// The fate of everything up to a batch is known.
    pub(super) fn settle(&mut self, Outcome { upto, result }: Outcome) {
        match self.fate_of(result) {
            Ok(()) => {
                self.committed.seq = upto;
                self.ports.followers.committed();
                let mut settled = Vec::new();
                while self.state.pending.front().is_some_and(|pending| pending.seq <= upto) {
                    if let Some(Pending { id, then, .. }) = self.state.pending.pop_front() {
                        match then {
                            Then::Follow(from, outcome) => self.perform(&id, from, outcome),
                            Then::Ask(ask) => self.ask(id.clone(), ask),
                            Then::Settled { to, seq } => self.settled(&id, &to, seq),
                            Then::Nothing => {}
                        }
                        settled.push(id);
                    }
                }
                // Not before: what follows later in the same commit is told to other instances from what is remembered here.
                settled.iter().for_each(|id| self.tidy(id));
            }
            Err(error) => self.fall_ill(upto, error),
        }
        self.heal_once_settled(upto);
        self.go_on_once_settled();
        self.show_levels();
    }

    /// Behind a commit that is said to have failed all others have, until the store has said where it stands. One that succeeds all the same means that the former is there as well, and was in
    /// doubt: whoever followed the later one alone would take both for told.
    fn fate_of(&self, result: Result<(), Arc<steadfast_store::Error>>) -> Result<(), Arc<steadfast_store::Error>> {
        match &self.state.health {
            Health::Healing(error) => result.and(Err(Arc::clone(error))),
            Health::Well | Health::Over(_) => result,
        }
    }

    /// Shows how much is waiting.
    fn show_levels(&mut self) {
        self.metrics.requests.set(self.ports.requests.len());
        self.metrics.decisions.set(self.state.pending.len());
        self.metrics.live.set(self.state.live.count());
        self.metrics.followers.set(self.ports.followers.count() as f64);
    }

    pub(super) fn perform(&mut self, id: &EntityId, from: From, outcome: Result<Follow, Refusal>) {
        let Follow { effects, mut entries, said } = match outcome {
            Ok(follow) => follow,
            Err(refusal) => return self.refuse(id, from, refusal),
        };
        entries.iter().for_each(|entry| self.metrics.count(entry));
        if !entries.is_empty() {
            self.note(id, &entries);
        }
        if let Some(last) = entries.last() {
            self.ports.followers.wrote(id);
            self.seat(id).told = last.seq;
        }
        let mut from = Some(from);
        for effect in effects {
            if self.state.has_ended && !matches!(effect, Effect::Answer(_) | Effect::AnnounceEnd) {
                continue; // it is begun where the shard is next
            }
            match effect {
                Effect::Arm(timer) => self.order(Order::Arm(timer)),
                Effect::Disarm(name) => self.order(Order::Disarm(id.clone(), name)),
                Effect::Open => {
                    self.seat(id).unsure_until = Some(0); // it begins
                    self.open(id, std::mem::take(&mut entries));
                }
                Effect::Host => {
                    let seat = self.seat(id);
                    seat.blocked = None; // that was in another life
                    if !entries.iter().any(|entry| matches!(entry.event, Event::RunRetried(_))) {
                        seat.unsure_until = Some(0); // it begins, or begins anew
                    }
                    self.ask(id.clone(), Ask::Resume);
                }
                Effect::Pause => self.seat(id).tell(ToHost::Pause),
                Effect::Resume => self.seat(id).tell(ToHost::Resume),
                Effect::Bounce(envelope) => drop(from.take().map(|from| self.bounce(*envelope, from))),
                Effect::StartAttempt { step, attempt } => {
                    let seat = self.seat(id);
                    seat.begun.insert(step.clone());
                    seat.tell(ToHost::StartAttempt { step, attempt });
                }
                Effect::Deliver(Completion::Stopped { failure: None, undo: false }) if self.seat(id).blocked.is_some() => self.call_off(id),
                Effect::Deliver(completion) => self.seat(id).tell(ToHost::Deliver(Box::new(completion))),
                Effect::CallBack { revision, attempt } => self.call_back(id, revision, attempt),
                Effect::Retire(_) | Effect::Shorten(_) | Effect::Forget => {} // it was part of the commit
                Effect::Close => self.close(id),
                Effect::AnnounceEnd => {
                    self.observe_end(id);
                    self.announce_end(id);
                }
                Effect::Answer(answer) => {
                    if let Some(from) = from.take() {
                        self.tell(id, from, answer);
                    }
                }
            }
        }
        match from {
            Some(From::Viewer(seen)) => seen.tell(),
            Some(From::Keeper(fired)) => self.order(Order::Settle(fired.timer)), // what it leads to is on its way
            _ => {}
        }
        self.relay_all(said);
    }

    /// Tells those who tell other instances how an entity is now. If more of it is on its way to the store, they hear when that is durable; one that was put away
    /// because all of it is durable, while what follows from that was still being done, is read again.
    pub(super) fn note(&mut self, id: &EntityId, entries: &[Entry]) {
        let Some(notes) = &self.notes else { return };
        notes.require(id, entries);
        match self.state.seats.get(id) {
            Some(seat) if seat.changed > self.committed.seq => {}
            Some(Seat { memory: Memory::Ready(entity), .. }) => entity.iter().for_each(|entity| notes.note(entity, entries)),
            Some(_) | None => {
                let (nobody_waits, _) = tokio::sync::oneshot::channel();
                self.ask(id.clone(), Ask::Look(Look::Share(nobody_waits)));
            }
        }
    }

    /// Whoever said something that cannot be hears of it; only then it is settled.
    fn bounce(&mut self, envelope: Envelope, from: From) {
        self.carry(envelope, from);
    }

    fn tell(&mut self, id: &EntityId, from: From, answer: Answer) {
        match from {
            From::Caller(reply, _) => drop(reply.send(Ok(answer))),
            From::Turn(session) => self.seat(id).tell_only(session, ToHost::TurnTaken),
            From::Failure(session, step) => self.seat(id).tell_only(session, ToHost::RetryScheduled { step }),
            From::Relay { from, to, seq } => self.heard(from, to, seq),
            From::Afar(heard) => drop(heard.send(())),
            From::Restart => {
                self.state.to_interrupt.remove(id);
                self.ask(id.clone(), Ask::Resume); // who called it off before that was on record has found nobody who may host it
            }
            From::Keeper(fired) => {
                if answer == Answer::Expired {
                    self.metrics.expired_late(self.clock.now().saturating_since(fired.timer.due));
                }
                self.order(Order::Settle(fired.timer)); // it was superseded, or the key has expired
            }
            From::Courier(told) => self.on_record(&told),
            From::Viewer(_) | From::Nobody => {}
        }
    }

    fn refuse(&mut self, id: &EntityId, from: From, refusal: Refusal) {
        match from {
            From::Caller(reply, _) => drop(reply.send(Err(refusal.into()))),
            From::Viewer(seen) => seen.fail(refusal.into()),
            From::Relay { from, to, seq } => self.heard(from, to, seq), // nothing comes of it
            From::Afar(heard) => drop(heard.send(())),
            From::Restart => drop(self.state.to_interrupt.remove(id)), // there is nothing to interrupt
            From::Nobody => {}
            From::Courier(told) => self.on_record(&told),
            From::Keeper(fired) => self.order(Order::Settle(fired.timer)), // the run is gone, and its timers with it
            From::Turn(session) | From::Failure(session, _) if self.is_current(id, session) => self.reopen(id, &refusal),
            From::Turn(_) | From::Failure(..) => {}
        }
    }

    pub(super) fn order(&mut self, order: Order) {
        let _keeper_is_gone = self.ports.timers.send(order);
    }

    /// Gives a run to the host.
    pub(super) fn open(&mut self, id: &EntityId, journal: Vec<Entry>) {
        if self.state.is_draining() {
            self.state.unopened.insert(id.clone());
            return; // it is opened after the next start
        }
        let left = self.state.left.remove(id);
        let seat = self.seat(id);
        let known = seat.unsure_until.take().or(left);
        let Some(run) = seat.run() else { return };
        let unsure_until = known.unwrap_or(run.seq);
        let (workflow, told, epoch) = (run.workflow.clone(), run.seq, run.epoch);
        let opening = Opening { unsure_until, ..Opening::of(run, journal) };
        let version = opening.definition.clone();
        let is_known = seat.hosted || known.is_some() && !seat.held_back;
        let session = self.host.next_session();
        let opened = match is_known || self.may_open(id, &opening) {
            true => self.host.open(session, opening),
            false => Err(Nobody::MayHaveIt),
        };
        match opened {
            Ok(line) => {
                self.state.live.add();
                let seat = self.seat(id);
                seat.hosted = true;
                (seat.session, seat.told, seat.leaving) = (Some(Session { id: session, epoch, line, unsure_until }), told, None);
                if self.seat(id).row_says_blocked {
                    self.write_row(id);
                }
            }
            Err(nobody) => {
                let seat = self.seat(id);
                (seat.unsure_until, seat.held_back) = (Some(unsure_until), nobody == Nobody::MayHaveIt);
                self.block(id, Wait::NoWorker { workflow: workflow.clone(), version });
                if nobody == Nobody::HasRoom {
                    self.wait_for_room(&workflow, 1);
                }
            }
        }
    }

    /// The host and the journal disagree: the future is dropped and rebuilt by replay.
    fn reopen(&mut self, id: &EntityId, refusal: &Refusal) {
        self.close(id);
        let Refusal::Stale { why, .. } = refusal else { return };
        match &mut self.seat(id).closing {
            Some(closing) => closing.stale = Some(why.to_string()),
            None => self.replay(id, why),
        }
    }

    /// Hosts a run anew, unless that was tried often enough without getting anywhere.
    fn replay(&mut self, id: &EntityId, why: &str) {
        tracing::warn!(run = %id, why, "the run is replayed");
        let seat = self.seat(id);
        seat.stale += 1;
        if seat.stale > STALE_MAX {
            let at = seat.run().map_or(0, |run| run.seq);
            return self.block(id, Wait::Mismatch { at, expected: "a turn that fits the journal".into(), found: why.into() });
        }
        self.ask(id.clone(), Ask::Resume);
    }

    /// A session is over. If its run is not, and nobody told it to stop, it has died.
    pub(super) fn closed(&mut self, id: &EntityId) {
        match self.seat(id).leaving {
            Some(_) => self.end_in_good_order(id),
            None => self.end_session(id),
        }
        if !self.seat(id).has_ended() && !self.state.is_draining() && !self.has_left(id) {
            self.replay(id, "its host has died");
        }
        self.tidy(id);
    }

    /// The code of a run cannot go on: it waits for another version of it.
    pub(super) fn block(&mut self, id: &EntityId, wait: Wait) {
        self.end_session(id);
        tracing::warn!(run = %id, reason = wait.reason(), detail = ?wait, "the run waits: its code cannot go on");
        self.seat(id).blocked = Some(wait);
        self.write_row(id);
        if self.seat(id).run().is_some_and(steadfast_kernel::Run::is_called_off) {
            self.call_off(id);
        }
    }

    /// Ends a run that was called off and that no host can see to.
    fn call_off(&mut self, id: &EntityId) {
        let again = Command::CancelRun(CancelRun { origin: Origin::default(), blocked: true });
        self.ask(id.clone(), Ask::Command(Box::new(again), From::Nobody));
    }

    /// Lists show why a run is blocked, though that is no part of its journal.
    pub(super) fn write_row(&mut self, id: &EntityId) {
        let shard = self.id;
        let seat = self.seat(id);
        let Some(row) = seat.run().map(|run| row(shard, run, seat.blocked.as_ref())) else { return };
        seat.row_says_blocked = seat.blocked.is_some();
        self.write(id, Batch { runs: vec![row], ..Batch::default() }, Then::Nothing);
    }

    /// Has the session of a run end. One at a worker has not ended before it says so: until then nobody else hosts the run.
    pub(super) fn close(&mut self, id: &EntityId) {
        let seat = self.seat(id);
        if seat.closing.is_some() {
            return;
        }
        if seat.session.as_ref().is_some_and(|session| session.line.close()) {
            (seat.closing, seat.leaving) = (Some(Closing { stale: None }), None);
        } else {
            self.end_session(id);
        }
    }

    /// A session that was told to end has ended, or its worker is lost.
    pub(super) fn has_closed(&mut self, id: &EntityId, lost: bool) {
        let stale = self.seat(id).closing.take().and_then(|closing| closing.stale);
        if lost {
            return self.lost(id);
        }
        self.end_session(id);
        if !self.seat(id).has_ended() && !self.state.is_draining() {
            match stale {
                Some(why) => self.replay(id, &why),
                None => self.ask(id.clone(), Ask::Resume),
            }
        }
        self.tidy(id);
    }

    /// A session is over that has left nothing unsaid.
    pub(super) fn end_in_good_order(&mut self, id: &EntityId) {
        let seat = self.seat(id);
        seat.unsure_until = seat.session.as_ref().map(|session| session.unsure_until);
        self.end_session(id);
    }

    pub(super) fn end_session(&mut self, id: &EntityId) {
        let seat = self.seat(id);
        seat.closing = None;
        seat.begun.clear();
        if seat.session.take().is_some() {
            self.state.live.remove();
            self.show_levels();
        }
        if let Some(place) = self.seat(id).idle.take() {
            self.state.idle.remove(&place);
        }
    }

    pub(super) fn wait_for_end(&mut self, id: &EntityId, waiter: Waiter) {
        let committed = self.committed.seq;
        let seat = self.seat(id);
        let Memory::Ready(Some(Entity::Run(run))) = &seat.memory else { return waiter.fail(not_found(id)) };
        match run.ended() {
            Some(_) if seat.changed <= committed => drop(waiter.tell(run)),
            // Its end may have been announced, and only what it said last is being settled: nobody would tell who begins to wait now.
            Some(_) => {
                let (seq, then) = (self.state.submitted, Then::Ask(Ask::Await(waiter)));
                self.state.pending.push_back(Pending { seq, id: id.clone(), then });
            }
            None => {
                seat.waiters.retain(|waiter| !waiter.is_closed()); // those who gave up do not add up
                seat.waiters.push(waiter);
            }
        }
    }

    /// A run that was read turns out to have ended, perhaps by a commit of ours that was said to have failed.
    pub(super) fn see_off(&mut self, id: &EntityId) {
        self.close(id);
        self.announce_end(id);
    }

    /// Tells who follows traces.
    fn observe_end(&mut self, id: &EntityId) {
        let Some(observer) = self.host.observer.clone() else { return };
        let Some((run, ended)) = self.seat(id).run().and_then(|run| Some((run, run.ended()?))) else { return };
        let (began_at, ended_at, status, failure) = (run.started_at, ended.at, run.status(), ended.outcome.as_ref().err());
        observer.ended(&RunEnded { run: &run.id, workflow: &run.workflow, epoch: run.epoch, began_at, ended_at, status, failure });
    }

    fn announce_end(&mut self, id: &EntityId) {
        let seat = self.seat(id);
        let waiters = std::mem::take(&mut seat.waiters);
        let Memory::Ready(Some(Entity::Run(run))) = &seat.memory else {
            return waiters.into_iter().for_each(|waiter| self.ask(id.clone(), Ask::Await(waiter)));
        };
        if run.ended().is_none() {
            return seat.waiters.extend(waiters); // it has begun again already
        }
        seat.blocked = None;
        tracing::debug!(run = %id, status = run.status().as_str(), "the run has ended");
        for waiter in waiters {
            let _it_has_ended = waiter.tell(run);
        }
    }

    /// The journal of a run cannot be followed: nothing of it is touched, and everybody who asks is told.
    pub(super) fn set_aside(&mut self, id: &EntityId, why: String) {
        tracing::error!(entity = %id, why, "it is set aside");
        self.close(id);
        self.end_session(id);
        self.state.to_interrupt.remove(id); // nobody goes on with it
        self.state.doubted.remove(id);
        if let Some(seat) = self.state.seats.remove(id) {
            for waiter in seat.waiters {
                waiter.fail(Error::JournalBroken { entity: id.clone(), why: why.clone() });
            }
        }
    }
}
