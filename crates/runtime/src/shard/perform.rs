//! What follows a commit: effects and answers. Nothing here is durable; what a crash loses is derived again from state.

use super::{Ask, Follow, From, Memory, Pending, Place, Reply, Session, Shard, Then};
use crate::committer::Outcome;
use crate::error::Error;
use crate::host::ToHost;
use crate::timers::Order;
use steadfast_kernel::run::Ended;
use steadfast_kernel::{Answer, CancelRun, Command, Effect, Entry, Refusal, RunId, Wait};
use tokio::sync::oneshot;

/// A host that is out of date this often in a row does not get right by replaying again.
const STALE_MAX: u32 = 5;

impl Shard {
    /// The fate of everything up to a batch is known.
    pub(super) fn settle(&mut self, Outcome { upto, result }: Outcome) {
        match result {
            Ok(()) => {
                self.committed.seq = upto;
                while self.state.pending.front().is_some_and(|pending| pending.seq <= upto) {
                    if let Some(Pending { run, then, .. }) = self.state.pending.pop_front() {
                        match then {
                            Then::Follow(from, outcome) => self.perform(&run, from, outcome),
                            Then::Ask(ask) => self.ask(run.clone(), ask),
                        }
                        self.tidy(&run);
                    }
                }
            }
            Err(error) => self.fall_ill(upto, error),
        }
        self.heal_once_settled(upto);
    }

    pub(super) fn perform(&mut self, id: &RunId, from: From, outcome: Result<Follow, Refusal>) {
        let Follow { effects, mut entries } = match outcome {
            Ok(follow) => follow,
            Err(refusal) => return self.refuse(id, from, refusal),
        };
        let mut from = Some(from);
        for effect in effects {
            match effect {
                Effect::Arm(timer) => self.order(Order::Arm(timer)),
                Effect::Disarm(name) => self.order(Order::Disarm(id.clone(), name)),
                Effect::Open => self.open(id, std::mem::take(&mut entries)),
                Effect::StartAttempt { step, attempt } => self.slot(id).tell(ToHost::StartAttempt { step, attempt }),
                Effect::Deliver(completion) => self.slot(id).tell(ToHost::Deliver(completion)),
                Effect::Close => self.close(id),
                Effect::AnnounceEnd => self.announce_end(id),
                Effect::Answer(answer) => {
                    if let Some(from) = from.take() {
                        self.tell(id, from, answer);
                    }
                }
            }
        }
        if let Some(From::Viewer(reply, view)) = from {
            let _nobody_waits = reply.send(Ok(*view));
        }
    }

    fn tell(&mut self, id: &RunId, from: From, answer: Answer) {
        match from {
            From::Caller(reply, _) => drop(reply.send(Ok(answer))),
            From::Turn(session) => self.slot(id).tell_only(session, ToHost::TurnTaken),
            From::Failure(session, step) => self.slot(id).tell_only(session, ToHost::RetryScheduled { step }),
            From::Keeper(_) | From::Viewer(..) => {}
        }
    }

    fn refuse(&mut self, id: &RunId, from: From, refusal: Refusal) {
        match from {
            From::Caller(reply, _) => drop(reply.send(Err(refusal.into()))),
            From::Viewer(reply, _) => drop(reply.send(Err(refusal.into()))),
            From::Keeper(_) => {} // the run is gone, and its timers with it
            From::Turn(session) | From::Failure(session, _) if self.is_current(id, session) => self.reopen(id, &refusal),
            From::Turn(_) | From::Failure(..) => {}
        }
    }

    fn order(&mut self, order: Order) {
        let _keeper_is_gone = self.ports.timers.send(order);
    }

    /// Gives a run to the host.
    pub(super) fn open(&mut self, id: &RunId, journal: Vec<Entry>) {
        if self.state.is_draining() {
            return; // it is opened after the next start
        }
        let Memory::Ready(Some(run)) = &self.slot(id).memory else { return };
        let workflow = run.workflow.clone();
        self.state.sessions += 1;
        let session = self.state.sessions;
        match self.host.open(id.clone(), &workflow, session, journal) {
            Some(sender) => {
                self.state.live += 1;
                self.slot(id).session = Some(Session { id: session, sender });
            }
            None => self.block(id, Wait::NoWorker { workflow }),
        }
    }

    /// The host and the journal disagree: the future is dropped and rebuilt by replay.
    fn reopen(&mut self, id: &RunId, refusal: &Refusal) {
        self.close(id);
        if let Refusal::Stale { why, .. } = refusal {
            self.replay(id, why);
        }
    }

    /// Hosts a run anew, unless that was tried often enough without getting anywhere.
    fn replay(&mut self, id: &RunId, why: &str) {
        tracing::warn!(run = %id, why, "the run is replayed");
        let slot = self.slot(id);
        slot.stale += 1;
        if slot.stale > STALE_MAX {
            let at = if let Memory::Ready(Some(run)) = &slot.memory { run.seq } else { 0 };
            return self.block(id, Wait::Mismatch { at, expected: "a turn that fits the journal".into(), found: why.into() });
        }
        self.ask(id.clone(), Ask::Resume);
    }

    /// A session is over. If its run is not, and nobody told it to stop, it has died.
    pub(super) fn closed(&mut self, id: &RunId) {
        self.end_session(id);
        if !self.slot(id).has_ended() && !self.state.is_draining() {
            self.replay(id, "its host has died");
        }
        self.tidy(id);
    }

    /// The code of a run cannot go on: it waits for another version of it.
    pub(super) fn block(&mut self, id: &RunId, wait: Wait) {
        self.end_session(id);
        tracing::warn!(run = %id, reason = wait.reason(), detail = ?wait, "the run waits: its code cannot go on");
        let slot = self.slot(id);
        slot.blocked = Some(wait);
        if matches!(&slot.memory, Memory::Ready(Some(run)) if run.is_called_off()) {
            let (nobody, _) = oneshot::channel(); // what its host can no longer see to is asked for again
            let again = Command::CancelRun(CancelRun { by: None, why: None, blocked: true });
            self.ask(id.clone(), Ask::Command(Box::new(again), From::Caller(nobody, Place::default())));
        }
    }

    fn close(&mut self, id: &RunId) {
        self.slot(id).tell(ToHost::Close);
        self.end_session(id);
    }

    pub(super) fn end_session(&mut self, id: &RunId) {
        if self.slot(id).session.take().is_some() {
            self.state.live -= 1;
        }
    }

    pub(super) fn wait_for_end(&mut self, id: &RunId, reply: Reply<Ended>) {
        let committed = self.committed.seq;
        let slot = self.slot(id);
        let Memory::Ready(Some(run)) = &slot.memory else {
            return drop(reply.send(Err(Refusal::RunNotFound { run: id.clone() }.into())));
        };
        match run.ended() {
            Some(ended) if slot.changed <= committed => drop(reply.send(Ok(ended.clone()))),
            _ => {
                slot.waiters.retain(|waiter| !waiter.is_closed()); // those who gave up do not add up
                slot.waiters.push(reply);
            }
        }
    }

    /// A run that was read turns out to have ended, perhaps by a commit of ours that was said to have failed.
    pub(super) fn see_off(&mut self, id: &RunId) {
        self.close(id);
        self.announce_end(id);
    }

    fn announce_end(&mut self, id: &RunId) {
        let slot = self.slot(id);
        let waiters = std::mem::take(&mut slot.waiters);
        let Memory::Ready(Some(run)) = &slot.memory else {
            return waiters.into_iter().for_each(|waiter| self.ask(id.clone(), Ask::Await(waiter)));
        };
        let Some(ended) = run.ended() else { return };
        slot.blocked = None;
        tracing::debug!(run = %id, status = run.status().as_str(), "the run has ended");
        for waiter in waiters {
            let _nobody_waits = waiter.send(Ok(ended.clone()));
        }
    }

    /// The journal of a run cannot be followed: nothing of it is touched, and everybody who asks is told.
    pub(super) fn set_aside(&mut self, id: &RunId, why: String) {
        tracing::error!(run = %id, why, "the run is set aside");
        self.close(id);
        if let Some(slot) = self.state.slots.remove(id) {
            for waiter in slot.waiters {
                let _nobody_waits = waiter.send(Err(Error::JournalBroken { run: id.clone(), why: why.clone() }));
            }
        }
    }
}
