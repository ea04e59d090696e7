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
mod left;
mod line;
mod registry;
mod remote;
mod replay;
mod session;
mod signal;
mod sleep;
mod stage;
mod step;
mod trace;
mod undo;
mod wire;
mod worker;
mod workflow;

pub(crate) use answer::check as check_answer;
pub use branch::{Fork, Scoped};
pub use child::{Child, StartChild};
pub use context::{CannotAsk, Context, Meddler};
pub use heartbeat::Heartbeat;
pub use left::TimeLeft;
pub(crate) use line::{InFlight, Line};
pub use registry::{Code, PlanSpec, Registered, Registry, Terms};
pub use remote::{Duplex, Gone, WorkerView, Workers};
pub(crate) use remote::{Nobody, Pool};
pub use signal::SignalCall;
pub use sleep::{SleepCall, Until};
pub use step::{Attempts, Probe, StepCall, UndoFn};
pub use trace::{Attempted, Observer, RunEnded, Span};
pub use wire::{Broken, Hello, Offer};
pub use worker::{Parted, Places, Worker};

use crate::clock::Clock;
use crate::cluster::Others;
use crate::commons::Gate;
use line::{Here, SharedBoard};
use session::Session;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use steadfast_kernel::run::Generations;
use steadfast_kernel::{
    Attempt, Checkpoint, Completion, Entry, Epoch, Payload, RecordHeartbeat, ReportFailure, Run, RunId, Seq, StepId, TakeTurn, TaskOptions,
    Timestamp, Wait, WorkflowName,
};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use workflow::Workflow;

/// Which opening of a run a message belongs to. What an older session says is dropped unread.
pub(crate) type SessionId = u64;

/// What a session is told.
#[derive(Clone, Debug, PartialEq)]
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
    /// Go on after all with what was held back for that.
    GoOn,
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
    /// What it takes up of the room that its worker has with the shard; free again when it was looked at.
    pub(crate) weight: Option<OwnedSemaphorePermit>,
}

#[derive(Clone, Debug, PartialEq)]
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
    /// Of the server alone: the worker that hosted the run is gone.
    Lost,
    /// The session has ended because it had to: nothing of it is in flight or left to record, and its run goes on elsewhere.
    GivenBack,
}

impl Says {
    /// True if the session says no more.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self, Says::Blocked(_) | Says::Closed | Says::Lost | Says::GivenBack)
    }
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
    /// Those who host runs for this process.
    pub(crate) pool: Option<Arc<Staff>>,
    /// The number of the last session of this process.
    pub(crate) sessions: Arc<AtomicU64>,
    /// Those who have what is hosted here once it is not this instance's any more.
    pub(crate) others: Option<Arc<Others>>,
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
    /// What could begin by an entry up to this one may have begun before, in a session that did not say what became of it.
    pub(crate) unsure_until: Seq,
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
            unsure_until: 0,
            script,
        }
    }
}

impl Host {
    /// Begins to host a run, here if its code is here, or at a worker. The way to talk to the session.
    ///
    /// # Errors
    /// If nobody can host it now.
    pub(crate) fn open(&self, session: SessionId, mut opening: Opening) -> Result<Line, Nobody> {
        opening.gate = self.gate.clone().filter(|_| opening.task.is_some());
        let Some(code) = self.registry.code(&opening.workflow, opening.definition.as_deref()) else {
            let pool = self.pool.as_ref().ok_or(Nobody::HasIt)?;
            return pool.0.open(session, opening).map(Line::There);
        };
        let (sender, inbox) = mpsc::unbounded_channel();
        let session = Session::new(self, &opening, session, inbox);
        let board = session.board();
        tokio::spawn(Box::pin(session.host(code, opening))); // it is large, and a task is moved several times while it is made
        Ok(Line::Here(Here::new(sender, board)))
    }

    /// Whether a run is hosted by a worker, if by anybody.
    pub(crate) fn is_elsewhere(&self, opening: &Opening) -> bool {
        opening.task.is_none() && self.registry.code(&opening.workflow, opening.definition.as_deref()).is_none()
    }

    /// A number that no other session of this process has.
    pub(crate) fn next_session(&self) -> SessionId {
        self.sessions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What goes for runs of a workflow that workers bring.
    pub(crate) fn known(&self, workflow: &WorkflowName) -> Option<Offer> {
        self.pool.as_ref().and_then(|pool| pool.0.known(workflow))
    }

    /// A run of that workflow waits for room at a worker.
    pub(crate) fn want(&self, workflow: &WorkflowName) {
        self.pool.iter().for_each(|pool| pool.0.want(workflow));
    }

    /// How many runs of that workflow could be opened now.
    pub(crate) fn room(&self, workflow: &WorkflowName) -> usize {
        match (self.registry.get(workflow), &self.pool) {
            (Some(_), _) => usize::MAX,
            (None, Some(pool)) => pool.0.room(workflow),
            (None, None) => 0,
        }
    }
}

/// Those who host runs, for as long as there is a shard whose runs they may host. All of them are told when that is over.
pub(crate) struct Staff(pub(crate) Arc<Pool>);

impl Drop for Staff {
    fn drop(&mut self) {
        self.0.stop();
    }
}

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
    let mismatch = replay::replay(&mut workflow, opening).await.err();
    workflow.close();
    mismatch
}
