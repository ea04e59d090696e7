//! The board: where the code of a run asks for things, and where outcomes are delivered to it.
//!
//! ```text
//!   step:   Asked --turn committed--> Open --succeeds--> Handed --delivered--> Delivered
//!             ^                        | ^
//!             | (not repeatable)  fails v | StartAttempt
//!             +------------------- Failed --RETRY_SCHEDULED--> Waiting
//!                                      +----given up---------> Handed
//!           a step that had begun when the journal ends, and may not be repeated, is InDoubt
//!   sleep, signal, child: Asked --turn committed--> Waiting --fires, arrives, ends--> Handed --delivered--> Delivered
//! ```
//!
//! The code only ever moves on when something is delivered. An attempt that finishes inside a poll hands its outcome over and stays pending; the
//! session delivers one outcome at a time. That is what makes the order the journal's and not the poll's.
//!
//! Tested by `crates/sdk/tests/it/redelivered.rs`.

mod beats;
mod hosting;
mod replaying;
mod time;

use super::CannotAsk;
use super::branch::Branch;
use super::step::UndoFn;
use super::{Opening, replay};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::Waker;
use std::thread::ThreadId;
use steadfast_kernel::random::Seed;
use steadfast_kernel::run::Generations;
use steadfast_kernel::{Attempt, Event, Failure, Payload, Policy, RunId, Seq, StepId, TimerName, Timestamp};

/// What is asked for: kinds are counted and named apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Step(StepId),
    /// The undo of that step.
    Undo(StepId),
    Sleep(StepId),
    Signal(StepId),
    Child(StepId),
}

impl Key {
    /// What it is the step, sleep or wait of.
    pub(super) fn id(&self) -> &StepId {
        match self {
            Key::Step(id) | Key::Undo(id) | Key::Sleep(id) | Key::Signal(id) | Key::Child(id) => id,
        }
    }

    /// What attempts are made of, and under which id they are reported.
    pub(super) fn attempted(&self) -> Option<StepId> {
        match self {
            Key::Step(id) => Some(id.clone()),
            Key::Undo(id) => Some(id.undo()),
            Key::Sleep(_) | Key::Signal(_) | Key::Child(_) => None,
        }
    }

    /// What is reported under that id.
    fn of_attempts(id: &StepId) -> Key {
        match id.undone() {
            Some(step) => Key::Undo(step),
            None => Key::Step(id.clone()),
        }
    }

    /// The timer that may be armed for it.
    fn timer(&self) -> Option<TimerName> {
        match self {
            Key::Step(id) => Some(TimerName::Retry(id.clone())),
            Key::Undo(id) => Some(TimerName::Retry(id.undo())),
            Key::Sleep(id) | Key::Signal(id) => Some(TimerName::Sleep(id.clone())),
            Key::Child(_) => None,
        }
    }
}

/// What the code asked for and has not yet taken the outcome of.
struct Op {
    state: State,
    ask: Ask,
    waker: Option<Waker>,
    /// The number of asks before it.
    order: u64,
    /// The entry of the journal after which it was asked for.
    since: Seq,
    /// The journal has the beginning of an attempt.
    begun: Option<Attempt>,
    /// The journal has a retry of it.
    retried: bool,
    /// The entry of the journal by which its next attempt may begin.
    may_begin_by: Seq,
    /// That attempt may have begun before, in a session that did not say what became of it.
    redelivered: bool,
}

#[derive(Clone)]
pub(super) enum Ask {
    Step { policy: Policy, asked_at: Timestamp, undo: Option<Undo>, not_repeatable: bool },
    Sleep { due_at: Timestamp, recorded: bool },
    Signal { name: String, until: Option<Timestamp>, approval: Option<Vec<String>>, recorded: bool },
    Child { started: Box<Event>, recorded: bool },
}

/// How a step is undone.
#[derive(Clone)]
pub(super) struct Undo {
    pub(super) undo: UndoFn,
    pub(super) policy: Policy,
}

/// An undo whose step has succeeded.
#[derive(Clone)]
pub(super) struct Registered {
    pub(super) step: StepId,
    pub(super) output: Payload,
    pub(super) undo: Undo,
}

#[derive(Debug)]
enum State {
    /// The turn it was asked in is not committed; a step is at that attempt.
    Asked(Attempt),
    /// This attempt may run.
    Open(Attempt),
    /// Nobody knows whether this attempt happened.
    InDoubt { attempt: Attempt, ask_a_person: bool },
    /// This attempt has failed; the engine decides.
    Failed(Attempt, Failure),
    /// Something durable is to happen first: a retry's delay, a sleep's end, a signal.
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
    /// The signal that is taken with it.
    pub(super) signal: Option<Seq>,
    /// The step has to be undone if the run does not complete.
    pub(super) undoable: bool,
}

/// What a step may do now.
pub(super) enum Gate {
    Wait,
    Run(Attempt),
    Doubt { attempt: Attempt, ask_a_person: bool },
    Done(Result<Payload, Failure>),
}

pub(super) struct Board {
    pub(super) seed: Seed,
    run: RunId,
    generations: Generations,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    now: Timestamp,
    ops: BTreeMap<Key, Op>,
    asks: u64,
    /// Asked since the session last looked, in the order of asking, with what must be recorded first.
    asked: Vec<(Key, Option<Event>)>,
    /// To be delivered, in order.
    handed: VecDeque<Handed>,
    /// Failed since the session last looked.
    failed: Vec<StepId>,
    /// What must not fire any more, since the last turn.
    disarmed: Vec<TimerName>,
    /// Signals that have arrived and were not taken.
    signals: BTreeMap<Seq, (String, Payload)>,
    /// What has to be undone, in the order of outcomes.
    undos: Vec<Registered>,
    /// How steps are undone that the code gave up waiting for in this turn.
    orphans: BTreeMap<StepId, Undo>,
    /// Successes of such steps that are not on record yet.
    kept: Vec<Handed>,
    /// Children that have ended and whose outcome was not taken.
    children: BTreeMap<StepId, Result<Payload, Failure>>,
    /// Steps that are not executed, and what they are to have returned.
    supplied: BTreeMap<StepId, Payload>,
    /// What attempts have said of how far they have come: the last of each step, and whether the session has seen it.
    beats: BTreeMap<StepId, Beat>,
    /// What the attempt before said last, by step.
    details: BTreeMap<StepId, Payload>,
    /// Since when the run's own time stands still.
    still_since: Option<Timestamp>,
    /// What the code has said of itself on record, by the type of the event: notes, skipped steps, stages.
    notes: BTreeSet<(&'static str, StepId)>,
    /// The code wants to begin again with this.
    next_input: Option<Payload>,
    /// The versions on record.
    versions: BTreeMap<StepId, u32>,
    /// The version that the run is on and the code does not know: what is on record, and what the code knows.
    unknown_version: Option<(String, String)>,
    /// The journal goes on beyond what was delivered.
    replaying: bool,
    /// The entry of the journal that was delivered last.
    replayed: Seq,
    branch: Arc<Branch>,
    /// Who polls the code right now.
    polled_by: Option<ThreadId>,
    /// The attempt that is being polled, and of what.
    attempt: Option<(Key, Attempt)>,
    /// Wakes the session when an attempt says something from elsewhere.
    session: Option<Waker>,
}

/// What an attempt says of how far it has come.
struct Beat {
    attempt: Attempt,
    details: Payload,
    /// How many there were.
    count: u64,
    seen: bool,
}

impl Inner {
    fn wake(&mut self, key: &Key, state: State) -> Option<Waker> {
        let op = self.ops.get_mut(key)?;
        op.state = state;
        op.waker.take()
    }

    /// An outcome that nobody wants any more leaves the line. A signal in it is not taken: it stays for the next who waits. A success that can
    /// be undone is kept: it happened, and is undone with the rest if the run does not complete.
    fn take_back(&mut self, key: &Key, ask: &Ask) {
        let Some(index) = self.handed.iter().position(|handed| handed.key == *key) else { return };
        match (self.handed.remove(index), ask) {
            (Some(Handed { signal: Some(signal), outcome: Ok(payload), .. }), Ask::Signal { name, .. }) => {
                self.signals.insert(signal, (name.clone(), payload));
            }
            (Some(handed @ Handed { undoable: true, outcome: Ok(_), .. }), _) => self.kept.push(handed),
            _ => {}
        }
    }
}

/// What the code asks for.
impl Board {
    pub(super) fn new(seed: Seed, now: Timestamp, opening: &Opening) -> Self {
        let (versions, notes) = (replay::versions(&opening.script), replay::notes(&opening.script));
        let (supplied, details) = (opening.supplied.clone(), opening.details.clone());
        let inner = Inner { now, versions, notes, supplied, details, replaying: true, ..Inner::default() };
        Board { seed, run: opening.run.clone(), generations: opening.generations.clone(), inner: Mutex::new(inner) }
    }

    /// The time of what was delivered last.
    pub(super) fn now(&self) -> Timestamp {
        self.inner.lock().now
    }

    /// The branch that is being polled.
    ///
    /// # Errors
    /// If it is not the run's own code that asks.
    pub(super) fn branch(&self) -> Result<Arc<Branch>, CannotAsk> {
        let inner = self.inner.lock();
        match (inner.polled_by == Some(std::thread::current().id()), &inner.attempt) {
            (false, _) => Err(CannotAsk::Outside),
            (true, Some(_)) => Err(CannotAsk::InsideAStep),
            (true, None) => Ok(Arc::clone(&inner.branch)),
        }
    }

    /// Changes the branch that is being polled, and tells which it was.
    pub(super) fn enter(&self, branch: Arc<Branch>) -> Arc<Branch> {
        std::mem::replace(&mut self.inner.lock().branch, branch)
    }

    /// The attempt that is being polled, and of what, if one is.
    pub(super) fn attempt(&self) -> Option<(Key, Attempt)> {
        self.inner.lock().attempt.clone()
    }

    /// Whether the attempt that is being polled may have begun before.
    pub(super) fn redelivered(&self) -> bool {
        let inner = self.inner.lock();
        let op = inner.attempt.as_ref().and_then(|(key, _)| inner.ops.get(key));
        op.is_some_and(|op| op.redelivered)
    }

    /// That attempt is about to be polled, or is no longer.
    pub(super) fn attempting(&self, attempt: Option<(Key, Attempt)>) {
        self.inner.lock().attempt = attempt;
    }

    /// The key that is equal for all attempts of one execution of a step or undo, and for no other.
    pub(super) fn idempotency_key(&self, key: &Key) -> String {
        let undo = if matches!(key, Key::Undo(_)) { "/undo" } else { "" };
        format!("{}{undo}", self.generations.key(&self.run, key.id()))
    }

    /// How often a child of that name was discarded.
    pub(super) fn generation(&self, child: &StepId) -> u32 {
        self.generations.get(child)
    }

    /// The code is about to be polled, or is no longer.
    pub(super) fn polled_by(&self, thread: Option<ThreadId>) {
        self.inner.lock().polled_by = thread;
    }

    pub(super) fn ask(&self, key: &Key, ask: Ask) {
        let mut inner = self.inner.lock();
        inner.asks += 1;
        let mut op = Op::new(ask, inner.asks, inner.replayed);
        match inner.supplied.get(key.id()).filter(|_| matches!(key, Key::Step(_))).cloned() {
            Some(output) => {
                op.state = State::Handed;
                let undoable = matches!(op.ask, Ask::Step { undo: Some(_), .. });
                inner
                    .handed
                    .push_back(Handed { key: key.clone(), attempt: 1, outcome: Ok(output), signal: None, undoable });
            }
            None => inner.asked.push((key.clone(), record(key, &op))),
        }
        inner.ops.insert(key.clone(), op);
    }

    /// Puts on record what the code says of itself, once: a note, a step that it leaves out, a stage.
    pub(super) fn note(&self, event: Event) {
        let Some(id) = event.subject().cloned() else { return };
        let mut inner = self.inner.lock();
        if inner.notes.insert((event.kind(), id.clone())) {
            inner.asked.push((Key::Step(id), Some(event)));
        }
    }

    /// The code begins again with that input, once it has returned.
    pub(super) fn continue_with(&self, input: Payload) {
        self.inner.lock().next_input = Some(input);
    }

    /// Where something stands that was asked for; its outcome is taken with this.
    pub(super) fn poll(&self, key: &Key, waker: &Waker) -> Gate {
        let mut inner = self.inner.lock();
        let Some(op) = inner.ops.get_mut(key) else { return Gate::Wait };
        match &op.state {
            State::Open(attempt) => return Gate::Run(*attempt),
            State::InDoubt { attempt, ask_a_person } => return Gate::Doubt { attempt: *attempt, ask_a_person: *ask_a_person },
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
        op.redelivered = false; // the next attempt, if there is one, begins after this is on record
        match outcome {
            Ok(output) => {
                op.state = State::Handed;
                let undoable = matches!(op.ask, Ask::Step { undo: Some(_), .. });
                inner
                    .handed
                    .push_back(Handed { key: key.clone(), attempt, outcome: Ok(output), signal: None, undoable });
            }
            Err(failure) => {
                op.state = State::Failed(attempt, failure);
                inner.failed.extend(key.attempted());
            }
        }
    }

    /// Nobody knows whether that attempt happened: it was cut off.
    pub(super) fn doubt(&self, key: &Key, attempt: Attempt) {
        if let Some(op) = self.inner.lock().ops.get_mut(key) {
            op.state = State::InDoubt { attempt, ask_a_person: false };
        }
    }

    /// Only a person can tell any more what became of an attempt: nothing of it is in flight.
    pub(super) fn ask_a_person(&self, key: &Key) {
        if let Some(Op { state: State::InDoubt { ask_a_person, .. }, .. }) = self.inner.lock().ops.get_mut(key) {
            *ask_a_person = true;
        }
    }

    /// The attempt did not happen: it is to be made again, once that is on record.
    pub(super) fn repeat(&self, key: &Key, attempt: Attempt, waker: &Waker) {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let Some(op) = inner.ops.get_mut(key) else { return };
        (op.state, op.begun, op.waker, op.redelivered) = (State::Asked(attempt), None, Some(waker.clone()), false);
        inner.asked.push((key.clone(), record(key, op)));
    }

    /// The code no longer wants it.
    pub(super) fn abandon(&self, key: &Key) {
        let mut inner = self.inner.lock();
        let Some(op) = inner.ops.remove(key) else { return }; // its outcome was taken
        inner.asked.retain(|(other, _)| other != key);
        inner.take_back(key, &op.ask);
        if let Some(step) = key.attempted() {
            inner.failed.retain(|other| *other != step);
        }
        if let (Key::Step(step), Ask::Step { undo: Some(undo), .. }) = (key, &op.ask) {
            inner.orphans.insert(step.clone(), undo.clone());
        }
        let on_record = match op.ask {
            Ask::Step { .. } => matches!(op.state, State::Waiting | State::Failed(..)) || op.begun.is_some() || op.retried,
            Ask::Sleep { recorded, .. } | Ask::Signal { recorded, .. } => recorded,
            Ask::Child { .. } => false,
        };
        if on_record {
            inner.disarmed.extend(key.timer());
        }
    }

    /// Which version of a change this run is on.
    pub(super) fn version(&self, id: StepId, versions: RangeInclusive<u32>) -> u32 {
        let mut inner = self.inner.lock();
        let recorded = inner.versions.get(&id).copied();
        let unplanned = (*versions.start()).min(1); // the code did not know of the change
        if let Some(version) = recorded.or_else(|| inner.replaying.then_some(unplanned)) {
            if !versions.contains(&version) {
                let known = format!("the code only knows the versions {} to {}", versions.start(), versions.end());
                inner.unknown_version.get_or_insert_with(|| (format!("version {version} of {id}"), known));
            }
            return version;
        }
        let version = *versions.end();
        inner.versions.insert(id.clone(), version);
        let output = Payload::json(version.to_string());
        let record = Event::StepCompleted { step: id.clone(), attempt: 1, output, undoable: false };
        inner.asked.push((Key::Step(id), Some(record)));
        version
    }
}

/// What must be recorded before it may begin.
fn record(key: &Key, op: &Op) -> Option<Event> {
    match (key, &op.ask, &op.state) {
        (Key::Sleep(id), Ask::Sleep { due_at, .. }, _) => Some(Event::TimerSet { sleep: id.clone(), due_at: *due_at }),
        (Key::Signal(id), Ask::Signal { name, until, approval, .. }, _) => {
            Some(Event::SignalAwaited { wait: id.clone(), name: name.clone(), until: *until, approval: approval.clone() })
        }
        (Key::Child(_), Ask::Child { started, .. }, _) => Some((**started).clone()),
        (Key::Step(id), Ask::Step { not_repeatable: true, .. }, State::Asked(attempt)) => {
            Some(Event::StepStarted { step: id.clone(), attempt: *attempt })
        }
        _ => None,
    }
}

impl Op {
    fn new(ask: Ask, order: u64, since: Seq) -> Self {
        let (state, may_begin_by) = (State::Asked(1), since);
        Op { state, ask, waker: None, order, since, begun: None, retried: false, may_begin_by, redelivered: false }
    }

    /// It is on record that it was asked for. False if it was already.
    fn set_recorded(&mut self) -> bool {
        match &mut self.ask {
            Ask::Sleep { recorded, .. } | Ask::Signal { recorded, .. } | Ask::Child { recorded, .. } => !std::mem::replace(recorded, true),
            Ask::Step { .. } => true,
        }
    }

    fn too_late(&self) -> Failure {
        let name = if let Ask::Signal { name, .. } = &self.ask { name } else { "" };
        steadfast_kernel::run::too_late(name)
    }
}

#[cfg(test)]
mod tests;
