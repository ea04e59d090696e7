//! The board: where the code of a run asks for things, and where outcomes are delivered to it.
//!
//! ```text
//!   step:   Asked --turn committed--> Open --succeeds--> Handed --delivered--> Delivered
//!             ^                        | ^
//!             | (not repeatable)  fails v | StartAttempt
//!             +------------------- Failed --RETRY_SCHEDULED--> Waiting
//!                                      +----given up---------> Handed
//!           a step that had begun when the journal ends, and may not be repeated, is InDoubt
//!   sleep, signal: Asked --turn committed--> Waiting --fires, arrives--> Handed --delivered--> Delivered
//! ```
//!
//! The code only ever moves on when something is delivered. An attempt that finishes inside a poll hands its outcome over and stays pending; the
//! session delivers one outcome at a time. That is what makes the order the journal's and not the poll's.

use super::CannotAsk;
use super::branch::Branch;
use super::step::UndoFn;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::Waker;
use std::thread::ThreadId;
use steadfast_kernel::random::Seed;
use steadfast_kernel::{
    Attempt, Code, Completion, Epoch, Event, Failure, Payload, Policy, ReportFailure, Seq, StepId, TimerName, Timestamp,
};

/// What is asked for: kinds are counted and named apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Step(StepId),
    /// The undo of that step.
    Undo(StepId),
    Sleep(StepId),
    Signal(StepId),
}

impl Key {
    /// What it is the step, sleep or wait of.
    pub(super) fn id(&self) -> &StepId {
        match self {
            Key::Step(id) | Key::Undo(id) | Key::Sleep(id) | Key::Signal(id) => id,
        }
    }

    /// What attempts are made of, and under which id they are reported.
    fn attempted(&self) -> Option<StepId> {
        match self {
            Key::Step(id) => Some(id.clone()),
            Key::Undo(id) => Some(id.undo()),
            Key::Sleep(_) | Key::Signal(_) => None,
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
    fn timer(&self) -> TimerName {
        match self {
            Key::Step(id) => TimerName::Retry(id.clone()),
            Key::Undo(id) => TimerName::Retry(id.undo()),
            Key::Sleep(id) | Key::Signal(id) => TimerName::Sleep(id.clone()),
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
}

#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "nearly every ask is a step")]
pub(super) enum Ask {
    Step { policy: Policy, asked_at: Timestamp, undo: Option<Undo>, not_repeatable: bool },
    Sleep { due_at: Timestamp, recorded: bool },
    Signal { name: String, until: Option<Timestamp>, recorded: bool },
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
    /// How steps are undone that the code gave up waiting for.
    orphans: BTreeMap<StepId, Undo>,
    /// Successes of such steps that are not on record yet.
    kept: Vec<Handed>,
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
    /// The attempt that is being polled.
    attempt: Option<Attempt>,
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
    pub(super) fn new(seed: Seed, now: Timestamp, versions: BTreeMap<StepId, u32>) -> Self {
        Board { seed, inner: Mutex::new(Inner { now, versions, replaying: true, ..Inner::default() }) }
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
        match (inner.polled_by == Some(std::thread::current().id()), inner.attempt) {
            (false, _) => Err(CannotAsk::Outside),
            (true, Some(_)) => Err(CannotAsk::InsideAStep),
            (true, None) => Ok(Arc::clone(&inner.branch)),
        }
    }

    /// Changes the branch that is being polled, and tells which it was.
    pub(super) fn enter(&self, branch: Arc<Branch>) -> Arc<Branch> {
        std::mem::replace(&mut self.inner.lock().branch, branch)
    }

    /// The attempt that is being polled, if one is.
    pub(super) fn attempt(&self) -> Option<Attempt> {
        self.inner.lock().attempt
    }

    /// That attempt is about to be polled, or is no longer.
    pub(super) fn attempting(&self, attempt: Option<Attempt>) {
        self.inner.lock().attempt = attempt;
    }

    /// The code is about to be polled, or is no longer.
    pub(super) fn polled_by(&self, thread: Option<ThreadId>) {
        self.inner.lock().polled_by = thread;
    }

    pub(super) fn ask(&self, key: &Key, ask: Ask) {
        let mut inner = self.inner.lock();
        inner.asks += 1;
        let op = Op { state: State::Asked(1), ask, waker: None, order: inner.asks, since: inner.replayed, begun: None, retried: false };
        inner.asked.push((key.clone(), record(key, &op)));
        inner.ops.insert(key.clone(), op);
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
        (op.state, op.begun, op.waker) = (State::Asked(attempt), None, Some(waker.clone()));
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
        };
        if on_record {
            inner.disarmed.push(key.timer());
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
        (Key::Signal(id), Ask::Signal { name, until, .. }, _) => {
            Some(Event::SignalAwaited { wait: id.clone(), name: name.clone(), until: *until })
        }
        (Key::Step(id), Ask::Step { not_repeatable: true, .. }, State::Asked(attempt)) => {
            Some(Event::StepStarted { step: id.clone(), attempt: *attempt })
        }
        _ => None,
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
        for (key, record) in &asked {
            if let (Some(op), Some(_)) = (inner.ops.get_mut(key), record) {
                op.set_recorded();
            }
        }
        asked
    }

    /// What must not fire any more, since the last turn.
    pub(super) fn take_disarmed(&self) -> Vec<TimerName> {
        std::mem::take(&mut self.inner.lock().disarmed)
    }

    /// Their turn is committed: steps may run, the rest waits for what it waits for.
    pub(super) fn open(&self, keys: &[Key]) {
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
    pub(super) fn start_attempt(&self, step: &StepId, attempt: Attempt) {
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
    pub(super) fn retry_scheduled(&self, step: &StepId) {
        if let Some(op) = self.inner.lock().ops.get_mut(&Key::of_attempts(step))
            && matches!(op.state, State::Failed(..))
        {
            op.state = State::Waiting;
        }
    }

    /// A completion that did not come from the code's own attempts takes its place in line, once.
    pub(super) fn line_up(&self, completion: Completion) {
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
            Completion::Stopped { .. } => return, // the session's to deal with
        };
        let Some(op) = inner.ops.get_mut(&key) else { return };
        if matches!(op.state, State::Waiting | State::Failed(..)) {
            op.state = State::Handed;
            inner.handed.push_back(Handed { key, attempt, outcome, signal: None, undoable: false });
        }
    }

    /// A signal that has arrived meets who waits for it, first come first served. One at a time: what is delivered before the next may end a wait, and
    /// its signal is then for somebody else.
    pub(super) fn match_signals(&self) {
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
    pub(super) fn take_failed(&self) -> Vec<StepId> {
        std::mem::take(&mut self.inner.lock().failed)
    }

    /// What is to be reported about a step whose attempt has failed.
    pub(super) fn failure(&self, epoch: Epoch, step: &StepId) -> Option<ReportFailure> {
        let in_flight = self.in_flight(Some(step));
        let inner = self.inner.lock();
        let op = inner.ops.get(&Key::of_attempts(step))?;
        let (State::Failed(attempt, failure), Ask::Step { policy, asked_at, .. }) = (&op.state, &op.ask) else { return None };
        let (failure, policy) = (failure.clone(), policy.clone());
        Some(ReportFailure {
            epoch,
            step: step.clone(),
            attempt: *attempt,
            failure,
            policy,
            asked_at: *asked_at,
            in_flight,
            unanswered: Vec::new(),
        })
    }

    /// The attempts whose failure the engine has not answered, as far as is known here, `except` that of one step.
    pub(super) fn unanswered(&self, except: Option<&StepId>) -> Vec<(StepId, Attempt)> {
        let failed = |(key, op): (&Key, &Op)| match op.state {
            State::Failed(attempt, _) => key.attempted().filter(|step| Some(step) != except).map(|step| (step, attempt)),
            _ => None,
        };
        self.inner.lock().ops.iter().filter_map(failed).collect()
    }

    pub(super) fn next_handed(&self) -> Option<Handed> {
        self.inner.lock().handed.pop_front()
    }

    /// Delivers an outcome at that time. False if the code does not wait for it.
    pub(super) fn deliver(&self, key: &Key, outcome: Result<Payload, Failure>, at: Timestamp) -> bool {
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
    pub(super) fn take_kept(&self) -> Vec<Handed> {
        std::mem::take(&mut self.inner.lock().kept)
    }

    /// A step that the code gave up waiting for has succeeded, and is undone with the rest. False if there is no such step.
    pub(super) fn adopt(&self, step: &StepId, output: &Payload) -> bool {
        let mut inner = self.inner.lock();
        let Some(undo) = inner.orphans.remove(step) else { return false };
        inner.undos.push(Registered { step: step.clone(), output: output.clone(), undo });
        true
    }

    /// Moves the time to that of an event that delivers nothing.
    pub(super) fn set_now(&self, at: Timestamp) {
        self.inner.lock().now = at;
    }

    /// What has to be undone, in the order of outcomes. It is taken once, when the code is over.
    pub(super) fn take_undos(&self) -> Vec<Registered> {
        std::mem::take(&mut self.inner.lock().undos)
    }

    /// True if something has to be undone.
    pub(super) fn has_undos(&self) -> bool {
        !self.inner.lock().undos.is_empty()
    }

    /// How many attempts are in flight, `except` that one: everything of a step that is neither delivered nor waiting for a recorded retry.
    pub(super) fn in_flight(&self, except: Option<&StepId>) -> u32 {
        let counts = |(key, op): &(&Key, &Op)| {
            let resting = matches!(op.state, State::Waiting | State::Delivered(_) | State::InDoubt { ask_a_person: true, .. });
            key.attempted().is_some_and(|step| Some(&step) != except) && !resting
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
        let waits: Vec<_> = inner.ops.iter().map(|(key, op)| format!("{} (since event {})", key.id(), op.since)).collect();
        if waits.is_empty() { "nothing".into() } else { waits.join(", ") }
    }
}

/// What replay does with it: the journal says what was asked for and what came of it.
impl Board {
    /// The journal has it: that was asked for. False if the code did not ask for it.
    pub(super) fn set_recorded(&self, key: &Key) -> bool {
        let mut inner = self.inner.lock();
        inner.asked.retain(|(other, _)| other != key);
        let Some(op) = inner.ops.get_mut(key) else { return false };
        op.state = State::Waiting;
        op.set_recorded()
    }

    /// The journal has it: that attempt of a step was about to begin. False if the code did not ask for it.
    pub(super) fn begun_recorded(&self, step: &StepId, attempt: Attempt) -> bool {
        let mut inner = self.inner.lock();
        let key = Key::Step(step.clone());
        inner.asked.retain(|(other, _)| *other != key);
        let Some(op) = inner.ops.get_mut(&key) else { return false };
        (op.state, op.begun) = (State::Waiting, Some(attempt));
        matches!(op.ask, Ask::Step { not_repeatable: true, .. })
    }

    /// The journal has it: that step has failed before. False if the code did not ask for it.
    pub(super) fn retry_recorded(&self, step: &StepId) -> bool {
        let mut inner = self.inner.lock();
        let key = Key::of_attempts(step);
        inner.asked.retain(|(other, _)| *other != key);
        let Some(op) = inner.ops.get_mut(&key) else { return false };
        (op.state, op.begun, op.retried) = (State::Waiting, None, true);
        true
    }

    /// The journal has it: whether that step is undone if the run does not complete. False if it is, and the code does not say how.
    pub(super) fn undoable_recorded(&self, step: &StepId, undoable: bool) -> bool {
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
    pub(super) fn doubt_recorded(&self, step: &StepId) -> bool {
        let mut inner = self.inner.lock();
        let key = Key::Step(step.clone());
        let Some(attempt) = inner.ops.get(&key).and_then(|op| op.begun) else { return false };
        let waker = inner.wake(&key, State::InDoubt { attempt, ask_a_person: true });
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// The payload of a signal that was taken, which is then gone.
    pub(super) fn take_signal(&self, signal: Seq) -> Option<Payload> {
        self.inner.lock().signals.remove(&signal).map(|(_, payload)| payload)
    }

    /// The outcome of a wait for a signal that did not come in time, if that is what this is.
    pub(super) fn too_late(&self, wait: &StepId) -> Option<Failure> {
        self.inner.lock().ops.get(&Key::Signal(wait.clone())).map(Op::too_late)
    }

    /// The version that the run is on and the code does not know, if there is one: what is on record, and what the code knows.
    pub(super) fn unknown_version(&self) -> Option<(String, String)> {
        self.inner.lock().unknown_version.take()
    }

    /// That entry of the journal is about to be delivered.
    pub(super) fn replaying(&self, seq: Seq) {
        self.inner.lock().replayed = seq;
    }

    /// The journal is at its end, as far as the code is concerned: what comes now is new.
    pub(super) fn go_live(&self) {
        self.inner.lock().replaying = false;
    }

    /// All of the journal is delivered: attempts that had begun and have no outcome are in doubt. What was disarmed is on record.
    pub(super) fn end_replay(&self) {
        let mut wakers = Vec::new();
        let mut inner = self.inner.lock();
        inner.disarmed.clear();
        for op in inner.ops.values_mut() {
            if let (State::Waiting, Some(attempt)) = (&op.state, op.begun) {
                op.state = State::InDoubt { attempt, ask_a_person: false };
                wakers.extend(op.waker.take());
            }
        }
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Op {
    /// It is on record that it was asked for. False if it was already.
    fn set_recorded(&mut self) -> bool {
        match &mut self.ask {
            Ask::Sleep { recorded, .. } | Ask::Signal { recorded, .. } => !std::mem::replace(recorded, true),
            Ask::Step { .. } => true,
        }
    }

    fn too_late(&self) -> Failure {
        let name = if let Ask::Signal { name, .. } = &self.ask { name } else { "" };
        Failure::permanent(format!("the signal {name:?} did not come in time")).code(Code::DeadlineExceeded)
    }
}

#[cfg(test)]
mod tests;
