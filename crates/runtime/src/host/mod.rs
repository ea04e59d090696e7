//! The host: it has the code of workflows and polls their futures.
//!
//! Host and shard speak in plain messages, `ToHost` and `Report`, so that hosting in another process is the same protocol over a wire.
//! A hosted run is a session: a task that owns the future and takes turns with it. The future and the session meet at the board, where
//! the code asks for things and outcomes are delivered.

mod answer;
mod board;
mod branch;
mod child;
mod context;
mod doubt;
mod heartbeat;
mod registry;
mod replay;
mod session;
mod signal;
mod sleep;
mod stage;
mod step;
mod trace;
mod undo;
mod workflow;

pub(crate) use answer::check as check_answer;
pub use branch::{Fork, Scoped};
pub use child::{Child, StartChild};
pub use context::{CannotAsk, Context, Meddler};
pub use heartbeat::Heartbeat;
pub use registry::{Code, PlanSpec, Registered, Registry, Terms};
pub use signal::SignalCall;
pub use sleep::{SleepCall, Until};
pub use step::{Attempts, Probe, StepCall, UndoFn};
pub use trace::{Attempted, Observer, RunEnded, Span};

use crate::clock::Clock;
use crate::commons::Gate;
use board::Board;
use session::Session;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use steadfast_kernel::run::Generations;
use steadfast_kernel::{
    Attempt, Checkpoint, Completion, Entry, Epoch, Payload, RecordHeartbeat, ReportFailure, Run, RunId, Seq, StepId, TakeTurn, TaskOptions,
    Timestamp, Wait, WorkflowName,
};
use tokio::sync::mpsc;
use workflow::Workflow;

/// Which opening of a run a message belongs to. What an older session says is dropped unread.
pub(crate) type SessionId = u64;

/// What a session is told.
#[derive(Debug)]
pub(crate) enum ToHost {
    /// The turn is recorded: what it asked for may begin.
    TurnTaken,
    /// The failure of that step is recorded, and its next attempt has its time.
    RetryScheduled { step: StepId },
    /// The store could not write: that was not recorded; say it again in a while.
    SayAgain(What),
    /// That attempt may begin.
    StartAttempt { step: StepId, attempt: Attempt },
    /// To be delivered in the next turn.
    Deliver(Box<Completion>),
    /// Begin nothing new; what is in flight goes on.
    Pause,
    /// Go on.
    Resume,
    /// Go if there is nothing to do: the run only waits, and is hosted again when something arrives.
    Leave,
    /// Begin nothing new; end when nothing is in flight.
    Drain,
    /// Drop everything.
    Close,
}

/// Which of a session's reports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// The turn that is under way.
    Turn,
    /// The failure of that step.
    Failure(StepId),
}

/// What a session says.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) run: RunId,
    pub(crate) session: SessionId,
    pub(crate) says: Says,
}

#[derive(Debug)]
pub(crate) enum Says {
    /// What the turn delivered and proposed.
    Turn(TakeTurn),
    /// An attempt has failed.
    Failed(ReportFailure),
    /// An attempt says how far it has come.
    Heartbeat(RecordHeartbeat),
    /// The run cannot go on with this code; the session has ended.
    Blocked(Wait),
    /// The session has ended, and nothing of it is left to record.
    Closed,
}

/// Opens sessions.
pub(crate) struct Host {
    pub(crate) registry: Registry,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) reports: mpsc::UnboundedSender<Report>,
    pub(crate) payload_bytes_max: usize,
    pub(crate) heartbeat_every: std::time::Duration,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// What stages of tasks wait for, if tenants are shared.
    pub(crate) gate: Option<Arc<Gate>>,
}

/// What a session is opened with.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) run: RunId,
    pub(crate) workflow: WorkflowName,
    /// The version of its definition that it began with.
    pub(crate) definition: Option<String>,
    pub(crate) epoch: Epoch,
    pub(crate) generations: Generations,
    /// Steps that are not executed, and what they are to have returned.
    pub(crate) supplied: BTreeMap<StepId, Payload>,
    /// What attempts of steps that have not succeeded said last of how far they had come, in earlier lives too.
    pub(crate) details: BTreeMap<StepId, Payload>,
    /// Nothing is begun until it is told to go on.
    pub(crate) paused: bool,
    /// When this life began, and the sequence of the event that says so, if there was one before.
    pub(crate) retried: Option<(Timestamp, Seq)>,
    /// What makes it a task: what such a run did is undone only if a person wants it.
    pub(crate) task: Option<Box<TaskOptions>>,
    /// A person wants it.
    pub(crate) rolls_back: bool,
    /// How far another instance has come with it, and what that has left.
    pub(crate) adopted: Option<Checkpoint>,
    /// What its stages wait for, if its tenant is shared.
    pub(crate) gate: Option<Arc<Gate>>,
    /// What of the journal still counts.
    pub(crate) script: Vec<Entry>,
}

impl Opening {
    pub(crate) fn of(run: &Run, mut script: Vec<Entry>) -> Self {
        if let (Some((at, seq)), [first, rest @ ..]) = (run.retried, &mut script[..])
            && rest.iter().all(|entry| entry.seq > seq || replay::is_arrival(&entry.event))
        {
            first.at = first.at.max(at); // nothing that the code was told is kept: it begins now
        }
        Opening {
            run: run.id.clone(),
            workflow: run.workflow.clone(),
            definition: run.options.definition.clone(),
            epoch: run.epoch,
            generations: run.generations.clone(),
            supplied: run.supplied.clone(),
            details: run.details.clone(),
            paused: run.open().is_some_and(steadfast_kernel::run::Open::stands_still),
            retried: run.retried,
            task: run.options.task.clone(),
            rolls_back: run.task().is_some_and(|task| task.rolls_back),
            adopted: run.task().and_then(|task| task.adopted.clone()),
            gate: None,
            script,
        }
    }
}

impl Host {
    /// Begins to host a run. The way to talk to the session, or nothing if its code is not here.
    pub(crate) fn open(&self, session: SessionId, mut opening: Opening) -> Option<Line> {
        opening.gate = self.gate.clone().filter(|_| opening.task.is_some());
        let code = self.registry.code(&opening.workflow, opening.definition.as_deref())?;
        let (sender, inbox) = mpsc::unbounded_channel();
        let session = Session::new(self, &opening, session, inbox);
        let board = session.board();
        tokio::spawn(Box::pin(session.host(code, opening))); // it is large, and a task is moved several times while it is made
        Some(Line { sender, board })
    }
}

/// The way to talk to a session, and to see what it does.
pub(crate) struct Line {
    pub(crate) sender: mpsc::UnboundedSender<ToHost>,
    board: SharedBoard,
}

impl Line {
    /// The attempts that are being made, of steps and undos.
    pub(crate) fn attempts(&self) -> Vec<(StepId, Attempt)> {
        self.board.get().and_then(Weak::upgrade).map(|board| board.attempts()).unwrap_or_default()
    }
}

/// The board of a session, once its code has begun.
type SharedBoard = Arc<OnceLock<Weak<Board>>>;

/// What a replay found.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// How many entries the journal has, those of earlier lives included.
    pub events: usize,
    /// Where the code and the journal part, if they do: always a [`Wait::Mismatch`].
    pub mismatch: Option<Wait>,
}

/// Replays a journal against code. Nothing is carried out: steps begin only in a session.
pub(crate) async fn compare(code: &dyn Code, opening: Opening, clock: Arc<dyn Clock>, payload_bytes_max: usize) -> Option<Wait> {
    let mut workflow = Workflow::begin(code, &opening, clock, payload_bytes_max, None)?;
    let mismatch = replay::replay(&mut workflow, opening.script, opening.retried).await.err();
    workflow.close();
    mismatch
}
