//! The board: where the code of a run asks for things, and where outcomes are delivered to it.
//!
//! ```text
//!   step:  Asked --turn committed--> Open --succeeds--> Handed --delivered--> Delivered
//!                                     | ^
//!                               fails v | StartAttempt
//!                                  Failed --RETRY_SCHEDULED--> Backoff
//!                                     +----given up----------> Handed
//!   sleep: Asked --turn committed--> Backoff(timer) --fires--> Handed --delivered--> Delivered
//! ```
//!
//! The code only ever moves on when something is delivered. An attempt that finishes inside a poll hands its outcome over and stays pending; the
//! session delivers one outcome at a time. That is what makes the order the journal's and not the poll's.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::task::Waker;
use steadfast_kernel::random::Seed;
use steadfast_kernel::{Attempt, Completion, Epoch, Event, Failure, Payload, Policy, ReportFailure, StepId, Timestamp};

/// What is asked for: steps and sleeps are counted and named apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Step(StepId),
    Sleep(StepId),
}

impl Key {
    pub(super) fn id(&self) -> &StepId {
        match self {
            Key::Step(id) | Key::Sleep(id) => id,
        }
    }
}

/// What the code asked for and has not yet taken the outcome of.
#[derive(Debug)]
struct Op {
    state: State,
    ask: Ask,
    waker: Option<Waker>,
}

#[derive(Clone, Debug)]
pub(super) enum Ask {
    Step { policy: Policy, asked_at: Timestamp },
    Sleep { due_at: Timestamp, recorded: bool },
}

#[derive(Debug)]
enum State {
    /// The turn it was asked in is not committed.
    Asked,
    /// This attempt may run.
    Open(Attempt),
    /// This attempt has failed; the engine decides.
    Failed(Attempt, Failure),
    /// Something durable is to happen first: a retry's delay, a sleep's end.
    Waiting,
    /// The outcome waits for its turn.
    Handed,
    /// The outcome is the code's to take.
    Delivered(Result<Payload, Failure>),
}

/// An outcome on its way into a turn.
#[derive(Debug)]
pub(super) struct Handed {
    pub(super) key: Key,
    pub(super) attempt: Attempt,
    pub(super) outcome: Result<Payload, Failure>,
}

/// What a step may do now.
pub(super) enum Gate {
    Wait,
    Run(Attempt),
    Done(Result<Payload, Failure>),
}

#[derive(Debug)]
pub(super) struct Board {
    pub(super) seed: Seed,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    now: Timestamp,
    ops: BTreeMap<Key, Op>,
    /// Asked since the session last looked, in the order of asking.
    asked: Vec<Key>,
    /// To be delivered, in order.
    handed: VecDeque<Handed>,
    /// Failed since the session last looked.
    failed: Vec<StepId>,
    /// Steps that the code gave up waiting for: a retry of theirs may still be recorded.
    abandoned: BTreeSet<StepId>,
}

/// What the code asks for.
impl Board {
    pub(super) fn new(seed: Seed, now: Timestamp) -> Self {
        let inner =
            Inner { now, ops: BTreeMap::new(), asked: Vec::new(), handed: VecDeque::new(), failed: Vec::new(), abandoned: BTreeSet::new() };
        Board { seed, inner: Mutex::new(inner) }
    }

    /// The time of what was delivered last.
    pub(super) fn now(&self) -> Timestamp {
        self.inner.lock().now
    }

    pub(super) fn ask(&self, key: &Key, ask: Ask) {
        let mut inner = self.inner.lock();
        inner.ops.insert(key.clone(), Op { state: State::Asked, ask, waker: None });
        inner.asked.push(key.clone());
    }

    /// Where a step or sleep stands; its outcome is taken with this.
    pub(super) fn poll(&self, key: &Key, waker: &Waker) -> Gate {
        let mut inner = self.inner.lock();
        let Some(op) = inner.ops.get_mut(key) else { return Gate::Wait };
        match &op.state {
            State::Open(attempt) => return Gate::Run(*attempt),
            State::Delivered(_) => {}
            _ => {
                op.waker = Some(waker.clone());
                return Gate::Wait;
            }
        }
        match inner.ops.remove(key) {
            Some(Op { state: State::Delivered(outcome), .. }) => Gate::Done(outcome),
            _ => Gate::Wait,
        }
    }

    /// The attempt has come to an end. A success waits for its turn, a failure for the engine's verdict.
    pub(super) fn hand_over(&self, key: &Key, attempt: Attempt, outcome: Result<Payload, Failure>, waker: &Waker) {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let Some(op) = inner.ops.get_mut(key) else { return };
        op.waker = Some(waker.clone());
        match outcome {
            Ok(output) => {
                op.state = State::Handed;
                inner.handed.push_back(Handed { key: key.clone(), attempt, outcome: Ok(output) });
            }
            Err(failure) => {
                op.state = State::Failed(attempt, failure);
                inner.failed.push(key.id().clone());
            }
        }
    }

    /// The code no longer wants it.
    pub(super) fn abandon(&self, key: &Key) {
        let mut inner = self.inner.lock();
        if inner.ops.remove(key).is_none() {
            return; // its outcome was taken
        }
        if let Key::Step(step) = key {
            inner.abandoned.insert(step.clone());
        }
        inner.asked.retain(|other| other != key);
        inner.failed.retain(|other| other != key.id());
        inner.handed.retain(|handed| handed.key != *key);
    }
}

/// What the session does with it.
impl Board {
    /// True if there is something to report, or to deliver unless a turn is under way.
    pub(super) fn has_news(&self, turn_under_way: bool) -> bool {
        let inner = self.inner.lock();
        let of_turns = !inner.asked.is_empty() || !inner.handed.is_empty();
        !inner.failed.is_empty() || (of_turns && !turn_under_way)
    }

    /// What was asked for since the last look, with what must be recorded before it may begin.
    pub(super) fn take_asked(&self) -> Vec<(Key, Option<Event>)> {
        let mut inner = self.inner.lock();
        let asked = std::mem::take(&mut inner.asked);
        let record = |key: &Key| match (key, inner.ops.get(key).map(|op| &op.ask)) {
            (Key::Sleep(id), Some(Ask::Sleep { due_at, recorded: false })) => Some(Event::TimerSet { sleep: id.clone(), due_at: *due_at }),
            _ => None,
        };
        asked.iter().map(|key| (key.clone(), record(key))).collect()
    }

    /// Their turn is committed: steps may run, sleeps wait for their timer.
    pub(super) fn open(&self, keys: &[Key]) {
        let mut wakers = Vec::new();
        let mut inner = self.inner.lock();
        for key in keys {
            if let Some(op) = inner.ops.get_mut(key)
                && matches!(op.state, State::Asked)
            {
                op.state = match op.ask {
                    Ask::Step { .. } => State::Open(1),
                    Ask::Sleep { .. } => State::Waiting,
                };
                wakers.extend(op.waker.take());
            }
        }
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The delay is over: that attempt may run.
    pub(super) fn start_attempt(&self, step: &StepId, attempt: Attempt) {
        let mut inner = self.inner.lock();
        let Some(op) = inner.ops.get_mut(&Key::Step(step.clone())) else { return };
        if !matches!(op.state, State::Waiting | State::Failed(..)) {
            return; // running already: the timer was armed twice
        }
        op.state = State::Open(attempt);
        let waker = op.waker.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
    }

    /// The engine has recorded the failure and will say when the next attempt begins.
    pub(super) fn retry_scheduled(&self, step: &StepId) {
        if let Some(op) = self.inner.lock().ops.get_mut(&Key::Step(step.clone()))
            && matches!(op.state, State::Failed(..))
        {
            op.state = State::Waiting;
        }
    }

    /// A completion that did not come from the code's own attempts takes its place in line, once.
    pub(super) fn line_up(&self, completion: Completion) {
        let (key, attempt, outcome) = match completion {
            Completion::StepFailed { step, attempt, failure } => (Key::Step(step), attempt, Err(failure)),
            Completion::TimerFired { sleep } => (Key::Sleep(sleep), 1, Ok(Payload::json("null"))),
        };
        let mut inner = self.inner.lock();
        let Some(op) = inner.ops.get_mut(&key) else { return };
        if matches!(op.state, State::Waiting | State::Failed(..)) {
            op.state = State::Handed;
            inner.handed.push_back(Handed { key, attempt, outcome });
        }
    }

    /// The steps whose attempts have failed since the last look.
    pub(super) fn take_failed(&self) -> Vec<StepId> {
        std::mem::take(&mut self.inner.lock().failed)
    }

    /// What is to be reported about a step whose attempt has failed.
    pub(super) fn failure(&self, epoch: Epoch, step: &StepId) -> Option<ReportFailure> {
        let in_flight = self.in_flight(Some(step));
        let inner = self.inner.lock();
        let Op { state: State::Failed(attempt, failure), ask: Ask::Step { policy, asked_at }, .. } =
            inner.ops.get(&Key::Step(step.clone()))?
        else {
            return None;
        };
        let (failure, policy) = (failure.clone(), policy.clone());
        Some(ReportFailure { epoch, step: step.clone(), attempt: *attempt, failure, policy, asked_at: *asked_at, in_flight })
    }

    pub(super) fn next_handed(&self) -> Option<Handed> {
        self.inner.lock().handed.pop_front()
    }

    /// Delivers an outcome at that time. False if the code does not wait for it.
    pub(super) fn deliver(&self, key: &Key, outcome: Result<Payload, Failure>, at: Timestamp) -> bool {
        let mut inner = self.inner.lock();
        inner.now = at;
        let Some(op) = inner.ops.get_mut(key) else { return false };
        if matches!(op.state, State::Delivered(_)) {
            return false;
        }
        op.state = State::Delivered(outcome);
        let waker = op.waker.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// Moves the time to that of an event that delivers nothing to a step or sleep.
    pub(super) fn set_now(&self, at: Timestamp) {
        self.inner.lock().now = at;
    }

    /// The journal has it: that sleep is set. False if the code did not ask for it.
    pub(super) fn set_recorded(&self, sleep: &StepId) -> bool {
        let mut inner = self.inner.lock();
        let Some(op) = inner.ops.get_mut(&Key::Sleep(sleep.clone())) else { return false };
        let Ask::Sleep { recorded, .. } = &mut op.ask else { return false };
        !std::mem::replace(recorded, true)
    }

    /// The journal has it: that step has failed before. False if the code did not ask for it.
    pub(super) fn retry_recorded(&self, step: &StepId) -> bool {
        let mut inner = self.inner.lock();
        match inner.ops.get_mut(&Key::Step(step.clone())) {
            Some(op) => op.state = State::Waiting,
            None => return inner.abandoned.contains(step),
        }
        true
    }

    /// How many attempts are in flight, `except` that one: everything of a step that is neither delivered nor waiting for a recorded retry.
    pub(super) fn in_flight(&self, except: Option<&StepId>) -> u32 {
        let counts = |(key, op): &(&Key, &Op)| {
            let Key::Step(step) = key else { return false };
            !matches!(op.state, State::Waiting | State::Delivered(_)) && Some(step) != except
        };
        u32::try_from(self.inner.lock().ops.iter().filter(counts).count()).unwrap_or(u32::MAX)
    }

    /// True if an attempt is running or its outcome is not yet recorded.
    pub(super) fn is_busy(&self) -> bool {
        let busy = |op: &Op| matches!(op.state, State::Open(_) | State::Failed(..) | State::Handed);
        self.inner.lock().ops.values().any(busy)
    }

    /// What the code waits for, for people.
    pub(super) fn waits_for(&self) -> String {
        let inner = self.inner.lock();
        let names: Vec<_> = inner.ops.keys().map(|key| key.id().to_string()).collect();
        if names.is_empty() { "nothing".into() } else { names.join(", ") }
    }
}
