//! What the session does with the board: it takes what was asked for, opens gates, and delivers outcomes one at a time.
//!
//! Tested by `crates/sdk/tests/it/races.rs`.

use super::time::later;
use super::{Ask, Board, Handed, Key, Op, Registered, State, record};
use std::task::Waker;
use steadfast_kernel::{Attempt, Completion, Epoch, Event, Failure, Payload, ReportFailure, StepId, TimerName, Timestamp};

impl Board {
    /// True if there is something to report, or to deliver unless a turn is under way.
    pub(in crate::host) fn has_news(&self, turn_under_way: bool, paused: bool, draining: bool) -> bool {
        let inner = self.inner.lock();
        let asked = || inner.asked.iter().any(|(_, record)| !draining || !says_that_it_begins(record));
        let of_turns = (!paused && asked()) || !inner.handed.is_empty();
        !inner.failed.is_empty() || inner.beats.values().any(|beat| !beat.seen) || (of_turns && !turn_under_way)
    }

    /// The attempts that are being made, of steps and undos.
    pub(in crate::host) fn attempts(&self) -> Vec<(StepId, Attempt)> {
        let inner = self.inner.lock();
        let open = |(key, op): (&Key, &Op)| match op.state {
            State::Open(attempt) => Some((key.attempted()?, attempt)),
            _ => None,
        };
        inner.ops.iter().filter_map(open).collect()
    }

    /// True if something is to be delivered.
    pub(in crate::host) fn has_handed(&self) -> bool {
        !self.inner.lock().handed.is_empty()
    }

    /// What the code wants to begin again with.
    pub(in crate::host) fn next_input(&self) -> Option<Payload> {
        self.inner.lock().next_input.clone()
    }

    /// What was asked for since the last look, with what must be recorded before it may begin. If nothing begins now, what is in doubt once it is recorded is asked for another time.
    pub(in crate::host) fn take_asked(&self, nothing_begins: bool) -> Vec<(Key, Option<Event>)> {
        let mut inner = self.inner.lock();
        let asked: Vec<_> = inner.asked.extract_if(.., |(_, record)| !nothing_begins || !says_that_it_begins(record)).collect();
        for (key, record) in &asked {
            if let (Some(op), Some(_)) = (inner.ops.get_mut(key), record) {
                op.set_recorded();
            }
        }
        asked
    }

    /// It is not on record that they begin: that is said in another turn.
    pub(in crate::host) fn ask_again(&self, keys: &[Key]) {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        for key in keys {
            let is_asked_for = inner.asked.iter().any(|(other, record)| other == key && says_that_it_begins(record));
            if let Some(op @ Op { state: State::Asked(_), .. }) = inner.ops.get(key)
                && !is_asked_for
            {
                inner.asked.push((key.clone(), record(key, op)));
            }
        }
    }

    /// Whether an attempt of it only begins once that is on record; it would be in doubt if it did not begin then.
    pub(in crate::host) fn is_to_begin(&self, key: &Key) -> bool {
        self.inner
            .lock()
            .ops
            .get(key)
            .is_some_and(|op| matches!(op.ask, Ask::Step { not_repeatable: true, .. }))
    }

    /// What must not fire any more, since the last turn.
    pub(in crate::host) fn take_disarmed(&self) -> Vec<TimerName> {
        std::mem::take(&mut self.inner.lock().disarmed)
    }

    /// Their turn is committed: steps may run, the rest waits for what it waits for.
    pub(in crate::host) fn open(&self, keys: &[Key]) {
        let mut wakers = Vec::new();
        let mut inner = self.inner.lock();
        for key in keys {
            if let Some(Op { state: State::Asked(attempt), ask, .. }) = inner.ops.get(key) {
                let state = if matches!(ask, Ask::Step { .. }) { State::Open(*attempt) } else { State::Waiting };
                wakers.extend(inner.wake(key, state));
            }
        }
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The delay is over: that attempt may run, or, if it may not be repeated, be recorded first.
    pub(in crate::host) fn start_attempt(&self, step: &StepId, attempt: Attempt) {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let key = Key::of_attempts(step);
        let Some(op) = inner.ops.get_mut(&key) else { return };
        match op.state {
            State::Waiting => {}
            State::Failed(failed, _) if failed < attempt => {}
            _ => return, // it runs or has failed already: the timer was armed twice
        }
        op.retried = true;
        if matches!(op.ask, Ask::Step { not_repeatable: true, .. }) {
            op.state = State::Asked(attempt);
            inner.asked.push((key.clone(), record(&key, op)));
            return;
        }
        let waker = inner.wake(&key, State::Open(attempt));
        waker.into_iter().for_each(Waker::wake);
    }

    /// The engine has recorded the failure and will say when the next attempt begins.
    pub(in crate::host) fn retry_scheduled(&self, step: &StepId) {
        let mut inner = self.inner.lock();
        if let Some(beat) = inner.beats.remove(step) {
            inner.details.insert(step.clone(), beat.details); // for the next attempt
        }
        if let Some(op) = inner.ops.get_mut(&Key::of_attempts(step))
            && matches!(op.state, State::Failed(..))
        {
            op.state = State::Waiting;
        }
    }

    /// A completion that did not come from the code's own attempts takes its place in line, once.
    pub(in crate::host) fn line_up(&self, completion: Completion) {
        let mut inner = self.inner.lock();
        let (key, attempt, outcome) = match completion {
            Completion::StepFailed { step, attempt, failure } => (Key::of_attempts(&step), attempt, Err(failure)),
            Completion::TimerFired { sleep } => match inner.ops.get(&Key::Signal(sleep.clone())) {
                Some(op) => (Key::Signal(sleep), 1, Err(op.too_late())),
                None => (Key::Sleep(sleep), 1, Ok(Payload::json("null"))),
            },
            Completion::SignalReceived { signal, name, payload } => {
                inner.signals.insert(signal, (name, payload));
                return;
            }
            Completion::ChildEnded { child, outcome } => {
                inner.children.insert(child, outcome);
                return;
            }
            Completion::Stopped { .. } => return, // the session's to deal with
        };
        let Some(op) = inner.ops.get_mut(&key) else { return };
        if matches!(op.state, State::Waiting | State::Failed(..)) {
            op.state = State::Handed;
            inner.handed.push_back(Handed { key, attempt, outcome, signal: None, undoable: false });
        }
    }

    /// What has arrived meets who waits for it.
    pub(in crate::host) fn match_arrivals(&self) {
        self.match_children();
        self.match_signals();
    }

    /// The outcome of a child is the code's as soon as it is there, whether it waits for it already or not.
    fn match_children(&self) {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        for (child, outcome) in std::mem::take(&mut inner.children) {
            let key = Key::Child(child);
            if let Some(op) = inner.ops.get_mut(&key)
                && matches!(op.state, State::Asked(_) | State::Waiting)
            {
                op.state = State::Handed;
                inner.handed.push_back(Handed { key, attempt: 1, outcome, signal: None, undoable: false });
            }
        }
    }

    /// The code is over: nobody waits for its children any more.
    pub(in crate::host) fn forget_children(&self) {
        self.inner.lock().ops.retain(|key, _| !matches!(key, Key::Child(_)));
    }

    /// A signal that has arrived meets who waits for it, first come first served. One at a time: what is delivered before the next may end a wait, and
    /// its signal is then for somebody else.
    fn match_signals(&self) {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        if inner.signals.is_empty() || inner.handed.iter().any(|handed| handed.signal.is_some()) {
            return;
        }
        let first = |name: &str| inner.signals.iter().find(|(_, (other, _))| other == name).map(|(signal, _)| *signal);
        let waiting = |(key, op): (&Key, &Op)| match (&op.ask, &op.state) {
            (Ask::Signal { name, .. }, State::Asked(_) | State::Waiting) => Some((op.order, key.clone(), first(name)?)),
            _ => None,
        };
        let Some((_, key, signal)) = inner.ops.iter().filter_map(waiting).min() else { return };
        let Some((_, payload)) = inner.signals.remove(&signal) else { return };
        if let Some(op) = inner.ops.get_mut(&key) {
            op.state = State::Handed;
        }
        inner
            .handed
            .push_back(Handed { key, attempt: 1, outcome: Ok(payload), signal: Some(signal), undoable: false });
    }

    /// The steps whose attempts have failed since the last look.
    pub(in crate::host) fn take_failed(&self) -> Vec<StepId> {
        std::mem::take(&mut self.inner.lock().failed)
    }

    /// What is to be reported about a step whose attempt has failed.
    pub(in crate::host) fn failure(&self, epoch: Epoch, step: &StepId, now: Timestamp) -> Option<ReportFailure> {
        let (in_flight, asked) = (self.in_flight(Some(step)), self.asked());
        let inner = self.inner.lock();
        let op = inner.ops.get(&Key::of_attempts(step))?;
        let (State::Failed(attempt, failure), Ask::Step { policy, asked_at, .. }) = (&op.state, &op.ask) else { return None };
        let (failure, policy) = (failure.clone(), policy.clone());
        let beat = inner.beats.get(step).filter(|beat| beat.attempt == *attempt);
        Some(ReportFailure {
            details: beat.map(|beat| beat.details.clone()).or_else(|| inner.details.get(step).cloned()),
            epoch,
            step: step.clone(),
            attempt: *attempt,
            failure,
            policy,
            asked_at: later(*asked_at, inner.still_since, now),
            in_flight,
            asked,
            unanswered: Vec::new(),
        })
    }

    /// The attempts whose failure the engine has not answered, as far as is known here, `except` that of one step.
    pub(in crate::host) fn unanswered(&self, except: Option<&StepId>) -> Vec<(StepId, Attempt)> {
        let failed = |(key, op): (&Key, &Op)| match op.state {
            State::Failed(attempt, _) => key.attempted().filter(|step| Some(step) != except).map(|step| (step, attempt)),
            _ => None,
        };
        self.inner.lock().ops.iter().filter_map(failed).collect()
    }

    pub(in crate::host) fn next_handed(&self) -> Option<Handed> {
        self.inner.lock().handed.pop_front()
    }

    /// Delivers an outcome at that time. False if the code does not wait for it.
    pub(in crate::host) fn deliver(&self, key: &Key, outcome: Result<Payload, Failure>, at: Timestamp) -> bool {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        inner.now = at;
        let Some(op) = inner.ops.get_mut(key) else { return false };
        if matches!(op.state, State::Delivered(_)) {
            return false;
        }
        if let (Key::Step(step), Ok(output), Ask::Step { undo: Some(undo), .. }) = (key, &outcome, &op.ask) {
            inner.undos.push(Registered { step: step.clone(), output: output.clone(), undo: undo.clone() });
        }
        inner.asked.retain(|(other, _)| other != key); // in replay: what has its outcome does not begin any more
        inner.handed.retain(|handed| handed.key != *key);
        let waker = inner.wake(key, State::Delivered(outcome));
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// Successes that can be undone of steps that the code gave up waiting for, since the last look. They are the host's to record.
    pub(in crate::host) fn take_kept(&self) -> Vec<Handed> {
        std::mem::take(&mut self.inner.lock().kept)
    }

    /// The turn is over: a success of a step that it gave up is on record, or there is none.
    pub(in crate::host) fn forget_orphans(&self) {
        self.inner.lock().orphans.clear();
    }

    /// A step that the code gave up waiting for has succeeded, and is undone with the rest. False if there is no such step.
    pub(in crate::host) fn adopt(&self, step: &StepId, output: &Payload) -> bool {
        let mut inner = self.inner.lock();
        let Some(undo) = inner.orphans.remove(step) else { return false };
        inner.undos.push(Registered { step: step.clone(), output: output.clone(), undo });
        true
    }

    /// Moves the time to that of an event that delivers nothing.
    pub(in crate::host) fn set_now(&self, at: Timestamp) {
        self.inner.lock().now = at;
    }

    /// What has to be undone, in the order of outcomes. It is taken once, when the code is over.
    pub(in crate::host) fn take_undos(&self) -> Vec<Registered> {
        std::mem::take(&mut self.inner.lock().undos)
    }

    /// True if something has to be undone.
    pub(in crate::host) fn has_undos(&self) -> bool {
        !self.inner.lock().undos.is_empty()
    }

    /// How many attempts are in flight, `except` that one: everything of a step that is neither delivered nor waiting for a recorded retry.
    pub(in crate::host) fn in_flight(&self, except: Option<&StepId>) -> u32 {
        let counts = |(key, op): &(&Key, &Op)| {
            let resting = matches!(op.state, State::Waiting | State::Delivered(_) | State::InDoubt { ask_a_person: true, .. });
            key.attempted().is_some_and(|step| Some(&step) != except) && !resting
        };
        u32::try_from(self.inner.lock().ops.iter().filter(counts).count()).unwrap_or(u32::MAX)
    }

    /// Those of them that have not begun: they do when what asks for them is on record and the run is not paused.
    pub(in crate::host) fn asked(&self) -> u32 {
        let counts = |(key, op): &(&Key, &Op)| key.attempted().is_some() && matches!(op.state, State::Asked(_));
        u32::try_from(self.inner.lock().ops.iter().filter(counts).count()).unwrap_or(u32::MAX)
    }

    /// True if the code only waits: for timers, signals, children, or a person's word.
    pub(in crate::host) fn is_idle(&self) -> bool {
        let inner = self.inner.lock();
        let waits = |op: &Op| matches!(op.state, State::Waiting | State::Delivered(_) | State::InDoubt { ask_a_person: true, .. });
        inner.asked.is_empty()
            && inner.handed.is_empty()
            && inner.failed.is_empty()
            && inner.kept.is_empty()
            && inner.ops.values().all(waits)
    }

    /// True if an attempt is running or its outcome is not yet recorded.
    pub(in crate::host) fn is_busy(&self) -> bool {
        let busy = |op: &Op| matches!(op.state, State::Open(_) | State::Failed(..) | State::Handed);
        self.inner.lock().ops.values().any(busy)
    }

    /// What the code waits for, for people.
    pub(in crate::host) fn waits_for(&self) -> String {
        let inner = self.inner.lock();
        let waits: Vec<_> = inner.ops.iter().map(|(key, op)| format!("{} (since event {})", key.id(), op.since)).collect();
        if waits.is_empty() { "nothing".into() } else { waits.join(", ") }
    }
}

/// Whether that says that an attempt begins which must not be made twice.
fn says_that_it_begins(record: &Option<Event>) -> bool {
    matches!(record, Some(Event::StepStarted { .. }))
}
