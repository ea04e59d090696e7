//! What the code of a run holds: its way to ask for things.
//!
//! Tested by `crates/sdk/tests/it/determinism.rs`.

use super::board::{Board, Key};
use super::branch::Branch;
use super::signal::SignalCall;
use super::step::{Attempts, StepCall, bounded};
use super::{Fork, Heartbeat, Observer, Opening, SleepCall, Span, StartChild, TimeLeft, Until};
use crate::clock::Clock;
use crate::commons::Gate;
use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use steadfast_kernel::{
    Attempt, Checkpoint, Code, Epoch, Event, Failure, InvalidId, Payload, Policy, RunId, StepId, TaskOptions, Timestamp, WorkflowName,
};

/// The longest note, in characters; the rest is cut off.
const NOTE_MAX: usize = 1000;

/// What the code of a run holds. Clones are the same run; what is asked for belongs to the branch that is being polled.
#[derive(Clone)]
pub struct Context {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    run: RunId,
    definition: Option<String>,
    pub(super) task: Option<Box<TaskOptions>>,
    pub(super) adopted: Option<Checkpoint>,
    pub(super) gate: Option<Arc<Gate>>,
    epoch: Epoch,
    observer: Option<Arc<dyn Observer>>,
    pub(super) board: Arc<Board>,
    clock: Arc<dyn Clock>,
    pub(super) payload_bytes_max: usize,
    meddler: OnceLock<Arc<dyn Meddler>>,
}

/// Stands between steps and their attempts; for tests.
pub trait Meddler: Send + Sync + 'static {
    /// What makes the attempts of that step, or of the undo of that id, instead of `attempts`. When it is called, the context tells which attempt it is.
    fn attempts<'a>(&self, step: StepId, context: &Context, attempts: Attempts<'a>) -> Attempts<'a>;
}

/// Why something cannot be asked for.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CannotAsk {
    /// The name is not allowed.
    #[error(transparent)]
    InvalidId(#[from] InvalidId),
    /// The context is used by something else than the code of the run.
    #[error(
        "a context was used outside of its workflow's own future; do not hand it to spawned tasks or threads: use ctx.join, ctx.all or ctx.race"
    )]
    Outside,
    /// The context is used by the attempt of a step.
    #[error("a context was used inside a step to do something durable; a step is one attempt at one thing: do it before or after the step")]
    InsideAStep,
}

impl CannotAsk {
    /// What the code is told.
    pub fn failure(&self) -> Failure {
        let code = if matches!(self, CannotAsk::InvalidId(_)) { Code::InvalidArgument } else { Code::FailedPrecondition };
        Failure::permanent(self).code(code)
    }
}

impl Context {
    pub(super) fn new(
        opening: &Opening,
        board: Arc<Board>,
        clock: Arc<dyn Clock>,
        payload_bytes_max: usize,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        let (run, definition, task, epoch) = (opening.run.clone(), opening.definition.clone(), opening.task.clone(), opening.epoch);
        let (adopted, gate, meddler) = (opening.adopted.clone(), opening.gate.clone(), OnceLock::new());
        Context {
            inner: Arc::new(Inner { run, definition, task, adopted, gate, epoch, observer, board, clock, payload_bytes_max, meddler }),
        }
    }

    /// Has somebody stand between the steps of the run and their attempts, from here on; who was first stays.
    pub fn meddle(&self, meddler: Arc<dyn Meddler>) {
        let _there_is_one = self.inner.meddler.set(meddler);
    }

    /// The id of the run.
    pub fn run_id(&self) -> &RunId {
        &self.inner.run
    }

    /// The version of its definition that the run began with, by hash; nothing if its code is no definition.
    pub fn definition(&self) -> Option<&str> {
        self.inner.definition.as_deref()
    }

    /// The time of what was delivered last: the same in replay.
    pub fn now(&self) -> Timestamp {
        self.inner.board.now()
    }

    /// The number of the attempt that is being made, from 1; nothing outside of a step.
    pub fn attempt(&self) -> Option<Attempt> {
        self.inner.board.attempt().map(|(_, attempt)| attempt)
    }

    /// Whether the attempt that is being made may have begun before and left no record: the run was opened again from its journal after its host had ended in a way that
    /// says nothing about it, and by then this attempt could begin. False outside of a step.
    pub fn redelivered(&self) -> bool {
        self.inner.board.redelivered()
    }

    /// What is left of the time of the attempt that is being made, and of those that may follow it; nothing outside of a step. `usual` is how long an attempt may take if its policy
    /// does not say.
    pub fn time_left(&self, usual: Duration) -> Option<TimeLeft> {
        let (key, attempt) = self.inner.board.attempt()?;
        let (policy, asked_at) = self.inner.board.terms(&key)?;
        Some(TimeLeft::of(&policy, attempt, asked_at, self.inner.clock.now(), usual))
    }

    /// The key that is equal for all attempts of this execution of the step or undo, and for no other; nothing outside of a step.
    pub fn idempotency_key(&self) -> Option<String> {
        self.inner.board.attempt().map(|(key, _)| self.inner.board.idempotency_key(&key))
    }

    /// The span of the attempt that is being made, to be passed on to whoever is called; nothing outside of a step, or if nobody follows traces.
    pub fn span(&self) -> Option<Span> {
        self.inner.observer.as_ref()?;
        let (key, attempt) = self.inner.board.attempt()?;
        Some(self.span_of(&key, attempt))
    }

    pub(super) fn span_of(&self, key: &Key, attempt: Attempt) -> Span {
        Span::of_attempt(&self.inner.run, &self.inner.board.idempotency_key(key), self.inner.epoch, attempt)
    }

    pub(super) fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.inner.observer.as_ref()
    }

    /// How the attempt that is being made says how far it has come; nothing outside of a step.
    pub fn heartbeat(&self) -> Option<Heartbeat> {
        let (key, attempt) = self.inner.board.attempt()?;
        Some(Heartbeat::new(Arc::clone(&self.inner.board), key.attempted()?, attempt, self.inner.payload_bytes_max))
    }

    /// What the attempt before the one that is being made said last; nothing outside of a step.
    pub fn last_heartbeat(&self) -> Option<Payload> {
        let (key, _) = self.inner.board.attempt()?;
        self.inner.board.details(&key.attempted()?)
    }

    /// Says how far the code has come.
    ///
    /// # Errors
    /// If it is said outside of the workflow's own future.
    pub fn note(&self, text: String) -> Result<(), CannotAsk> {
        let branch = self.branch()?;
        let text = text.chars().take(NOTE_MAX).collect();
        let note = StepId::note(&branch.path, branch.count("note", ""));
        self.inner.board.note(Event::ProgressNoted { note, text });
        Ok(())
    }

    /// The code begins again with that input and without a past, once it has returned the failure that this gives.
    ///
    /// # Errors
    /// If it is asked for outside of the workflow's own future.
    pub fn continue_as_new(&self, input: Payload) -> Result<Failure, CannotAsk> {
        self.branch()?;
        Ok(match bounded("the input", input, self.inner.payload_bytes_max) {
            Ok(input) => {
                self.inner.board.continue_with(input);
                continues()
            }
            Err(too_large) => too_large,
        })
    }

    /// Another run, started by this one.
    ///
    /// # Errors
    /// If the workflow's name is not allowed, or it is asked for outside of the workflow's own future.
    pub fn start(&self, workflow: &str, input: Payload) -> Result<StartChild, CannotAsk> {
        let branch = self.branch()?;
        let id = StepId::child(&branch.path, workflow, branch.count("child", workflow))?;
        Ok(StartChild {
            board: Arc::clone(&self.inner.board),
            parent: self.inner.run.clone(),
            id,
            workflow: WorkflowName::new(workflow)?,
            input: bounded("the input", input, self.inner.payload_bytes_max),
            run: None,
            deadline: None,
            tenant: None,
            limits: Vec::new(),
            detached: false,
        })
    }

    /// The next number of the stream of that name in this branch: the same in replay.
    ///
    /// # Errors
    /// If it is asked for outside of the workflow's own future.
    pub fn random(&self, stream: &str) -> Result<u64, CannotAsk> {
        Ok(self.branch()?.draw(&self.inner.board.seed, stream))
    }

    /// A step: `attempt` is called once per attempt, until one succeeds or the policy says enough.
    ///
    /// # Errors
    /// If its name is not allowed, or it is asked for outside of the workflow's own future.
    pub fn step<'a>(&self, name: &str, attempts: Attempts<'a>) -> Result<StepCall<'a>, CannotAsk> {
        let branch = self.branch()?;
        let id = StepId::new(&branch.path, name, branch.count("step", name))?;
        Ok(self.call(Key::Step(id), attempts))
    }

    /// Leaves a step of that name out. Nobody waits for that: it is on record with the turn that is being taken.
    ///
    /// # Errors
    /// If its name is not allowed, or it is asked for outside of the workflow's own future.
    pub fn skip(&self, name: &str) -> Result<(), CannotAsk> {
        let branch = self.branch()?;
        let step = StepId::new(&branch.path, name, branch.count("step", name))?;
        self.inner.board.note(Event::StepSkipped { step });
        Ok(())
    }

    /// The undo of a step.
    pub(super) fn undo<'a>(&self, step: StepId, attempts: Attempts<'a>, policy: Policy) -> StepCall<'a> {
        let mut call = self.call(Key::Undo(step), attempts);
        call.set_policy(policy);
        call
    }

    fn call<'a>(&self, key: Key, attempts: Attempts<'a>) -> StepCall<'a> {
        let (board, clock) = (Arc::clone(&self.inner.board), Arc::clone(&self.inner.clock));
        let attempts = match (self.inner.meddler.get(), key.attempted()) {
            (Some(meddler), Some(step)) => meddler.attempts(step, self, attempts),
            _ => attempts,
        };
        StepCall::new(self.clone(), board, clock, key, self.inner.payload_bytes_max, attempts)
    }

    /// Sleeps, durably.
    ///
    /// # Errors
    /// If it is asked for outside of the workflow's own future.
    pub fn sleep(&self, until: Until) -> Result<SleepCall, CannotAsk> {
        let branch = self.branch()?;
        let id = StepId::sleep(&branch.path, branch.count("sleep", ""));
        Ok(SleepCall::new(Arc::clone(&self.inner.board), id, until))
    }

    /// Waits for a signal.
    ///
    /// # Errors
    /// If its name is not allowed, or it is asked for outside of the workflow's own future.
    pub fn signal(&self, name: &str) -> Result<SignalCall, CannotAsk> {
        let branch = self.branch()?;
        let id = StepId::signal(&branch.path, name, branch.count("signal", name))?;
        Ok(SignalCall::new(Arc::clone(&self.inner.board), id, name.into()))
    }

    /// Waits for a person's yes or no: a signal that one in those roles may send, everybody if there are none.
    ///
    /// # Errors
    /// As [`signal`](Self::signal).
    pub fn approval(&self, name: &str, roles: Vec<String>) -> Result<SignalCall, CannotAsk> {
        Ok(self.signal(name)?.of_approval(roles))
    }

    /// Waits for a person's word, under a name that no code can use.
    pub(super) fn question(&self, id: StepId, name: String) -> SignalCall {
        SignalCall::new(Arc::clone(&self.inner.board), id, name)
    }

    /// Which version of a change this run is on: the last one, unless the run has come past this place before.
    ///
    /// # Errors
    /// If its name is not allowed, or it is asked for outside of the workflow's own future.
    pub fn version(&self, change: &str, versions: RangeInclusive<u32>) -> Result<u32, CannotAsk> {
        let branch = self.branch()?;
        let id = StepId::version(&branch.path, change, branch.count("version", change))?;
        Ok(self.inner.board.version(id, versions))
    }

    /// Branches below the current one.
    ///
    /// # Errors
    /// If the name is not allowed, or it is asked for outside of the workflow's own future.
    pub fn fork(&self, name: &str) -> Result<Fork, CannotAsk> {
        let parent = self.branch()?.child(name)?;
        Ok(Fork { board: Arc::clone(&self.inner.board), parent })
    }

    pub(super) fn branch(&self) -> Result<Arc<Branch>, CannotAsk> {
        self.inner.board.branch()
    }
}

/// What the code returns when it is to begin again.
pub(super) fn continues() -> Failure {
    Failure::permanent("the run continues as new; return this failure as it is").code(Code::Cancelled)
}
