//! The host: it has the code of workflows and polls their futures.
//!
//! Host and shard speak in plain messages, `ToHost` and `Report`, so that hosting in another process is the same protocol over a wire.
//! A hosted run is a session: a task that owns the future and takes turns with it. The future and the session meet at the board, where
//! the code asks for things and outcomes are delivered.

mod board;
mod branch;
mod context;
mod doubt;
mod replay;
mod session;
mod signal;
mod sleep;
mod step;
mod undo;

pub use branch::{Fork, Scoped};
pub use context::{CannotAsk, Context};
pub use signal::SignalCall;
pub use sleep::SleepCall;
pub use step::{Attempts, Probe, StepCall, UndoFn};

use crate::clock::Clock;
use futures_util::future::BoxFuture;
use session::{Session, Workflow};
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast_kernel::{Attempt, Completion, Entry, Failure, Payload, ReportFailure, RunId, StepId, TakeTurn, Wait, WorkflowName};
use tokio::sync::mpsc;

/// The code of a workflow, as the host sees it: bytes in, bytes out.
pub trait Code: Send + Sync + 'static {
    /// Begins the workflow. The future is polled by turns, and is dropped when the run ends or is closed.
    fn begin(&self, context: Context, input: Payload) -> BoxFuture<'static, Result<Payload, Failure>>;
}

/// The workflows that this process has the code of.
pub type Registry = BTreeMap<WorkflowName, Arc<dyn Code>>;

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
    Deliver(Completion),
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
}

impl Host {
    /// Begins to host a run from its journal. The way to talk to the session, or nothing if its code is not here.
    pub(crate) fn open(
        &self,
        run: RunId,
        workflow: &WorkflowName,
        session: SessionId,
        journal: Vec<Entry>,
    ) -> Option<mpsc::UnboundedSender<ToHost>> {
        let code = Arc::clone(self.registry.get(workflow)?);
        let (sender, inbox) = mpsc::unbounded_channel();
        let session = Session::new(self, run, session, inbox);
        tokio::spawn(session.host(code, journal));
        Some(sender)
    }
}

/// What a replay found.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// How many entries the journal has.
    pub events: usize,
    /// Where the code and the journal part, if they do: always a [`Wait::Mismatch`].
    pub mismatch: Option<Wait>,
}

/// Replays a journal against code. Nothing is carried out: steps begin only in a session.
pub(crate) async fn compare(code: &dyn Code, run: RunId, clock: Arc<dyn Clock>, payload_bytes_max: usize, journal: Vec<Entry>) -> Replayed {
    let events = journal.len();
    let Some(mut workflow) = Workflow::begin(code, run, clock, payload_bytes_max, &journal) else {
        return Replayed { events, mismatch: None };
    };
    let mismatch = replay::replay(&mut workflow, journal).await.err();
    workflow.close();
    Replayed { events, mismatch }
}
