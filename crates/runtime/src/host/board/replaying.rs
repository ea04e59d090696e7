//! What replay does with the board: the journal says what was asked for and what came of it.
//!
//! Tested by `crates/sdk/tests/it/redelivered.rs`.

use super::{Ask, Board, Key, Op, State};
use std::task::Waker;
use steadfast_kernel::{Attempt, Failure, Payload, Seq, StepId};

impl Board {
    /// The journal has it: that was asked for. False if the code did not ask for it.
    pub(in crate::host) fn set_recorded(&self, key: &Key) -> bool {
        let mut inner = self.inner.lock();
        inner.asked.retain(|(other, _)| other != key);
        let Some(op) = inner.ops.get_mut(key) else { return false };
        op.state = State::Waiting;
        op.set_recorded()
    }

    /// The journal has it: that attempt of a step was about to begin. False if the code did not ask for it.
    pub(in crate::host) fn begun_recorded(&self, step: &StepId, attempt: Attempt) -> bool {
        let mut inner = self.inner.lock();
        let key = Key::Step(step.clone());
        inner.asked.retain(|(other, _)| *other != key);
        let Some(op) = inner.ops.get_mut(&key) else { return false };
        (op.state, op.begun) = (State::Waiting, Some(attempt));
        matches!(op.ask, Ask::Step { not_repeatable: true, .. })
    }

    /// The journal has it: that step has failed before. False if the code did not ask for it.
    pub(in crate::host) fn retry_recorded(&self, step: &StepId, seq: Seq) -> bool {
        let mut inner = self.inner.lock();
        let key = Key::of_attempts(step);
        inner.asked.retain(|(other, _)| *other != key);
        let Some(op) = inner.ops.get_mut(&key) else { return false };
        (op.state, op.begun, op.retried, op.may_begin_by) = (State::Waiting, None, true, seq); // what was supplied is not, once it was tried
        true
    }

    /// The journal has it: whether that step is undone if the run does not complete. False if it is, and the code does not say how.
    pub(in crate::host) fn undoable_recorded(&self, step: &StepId, undoable: bool) -> bool {
        match self.inner.lock().ops.get_mut(&Key::Step(step.clone())) {
            Some(Op { ask: Ask::Step { undo, .. }, .. }) if undoable => undo.is_some(),
            Some(Op { ask: Ask::Step { undo, .. }, .. }) => {
                *undo = None;
                true
            }
            _ => true, // it was not asked for, which shows when it is delivered
        }
    }

    /// The journal has it: a person was asked about that step. False if there was no doubt about it.
    pub(in crate::host) fn doubt_recorded(&self, step: &StepId) -> bool {
        let mut inner = self.inner.lock();
        let key = Key::Step(step.clone());
        let Some(attempt) = inner.ops.get(&key).and_then(|op| op.begun) else { return false };
        let waker = inner.wake(&key, State::InDoubt { attempt, ask_a_person: true });
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// The outcome of a child that was taken, which is then gone.
    pub(in crate::host) fn take_child(&self, child: &StepId) -> Option<Result<Payload, Failure>> {
        self.inner.lock().children.remove(child)
    }

    /// The payload of a signal that was taken, which is then gone.
    pub(in crate::host) fn take_signal(&self, signal: Seq) -> Option<Payload> {
        self.inner.lock().signals.remove(&signal).map(|(_, payload)| payload)
    }

    /// The outcome of a wait for a signal that did not come in time, if that is what this is.
    pub(in crate::host) fn too_late(&self, wait: &StepId) -> Option<Failure> {
        self.inner.lock().ops.get(&Key::Signal(wait.clone())).map(Op::too_late)
    }

    /// The version that the run is on and the code does not know, if there is one: what is on record, and what the code knows.
    pub(in crate::host) fn unknown_version(&self) -> Option<(String, String)> {
        self.inner.lock().unknown_version.take()
    }

    /// That entry of the journal is about to be delivered.
    pub(in crate::host) fn replaying(&self, seq: Seq) {
        self.inner.lock().replayed = seq;
    }

    /// The journal is at its end, as far as the code is concerned: what comes now is new.
    pub(in crate::host) fn go_live(&self) {
        self.inner.lock().replaying = false;
    }

    /// All of the journal is delivered: attempts that had begun and have no outcome are in doubt, and those that could begin by an entry up to that one may have begun.
    /// What was disarmed is on record.
    pub(in crate::host) fn end_replay(&self, unsure_until: Seq) {
        let mut wakers = Vec::new();
        let mut inner = self.inner.lock();
        inner.disarmed.clear();
        for op in inner.ops.values_mut() {
            op.redelivered = matches!(op.state, State::Asked(_) | State::Waiting) && op.may_begin_by <= unsure_until;
            if let (State::Waiting, Some(attempt)) = (&op.state, op.begun) {
                op.state = State::InDoubt { attempt, ask_a_person: false };
                wakers.extend(op.waker.take());
            }
        }
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }
}
