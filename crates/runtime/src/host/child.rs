//! Runs that are started by a run.
//!
//! Tested by `crates/sdk/tests/it/children.rs`.

use super::board::{Ask, Board, Gate, Key};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;
use steadfast_kernel::{Event, Failure, Limiting, Parent, Payload, RunId, RunOptions, StepId, WorkflowName};

/// A child that is about to be started.
pub struct StartChild {
    pub(super) board: Arc<Board>,
    pub(super) parent: RunId,
    pub(super) id: StepId,
    pub(super) workflow: WorkflowName,
    pub(super) input: Result<Payload, Failure>,
    /// The id of the run; one is made of the parent's if there is none.
    pub run: Option<RunId>,
    /// How long it may take in all.
    pub deadline: Option<Duration>,
    /// Whose work it is.
    pub tenant: Option<String>,
    /// The limits it needs a slot of.
    pub limits: Vec<Limiting>,
    /// Nobody waits for it, and it does not end with its parent.
    pub detached: bool,
}

impl StartChild {
    /// Has it started: it is on record with the turn that is being taken, and begins after that.
    ///
    /// # Errors
    /// If its input is larger than allowed.
    pub fn start(self) -> Result<Child, Failure> {
        let StartChild { board, parent, id, workflow, input, run, deadline, tenant, limits, detached } = self;
        let run = run.unwrap_or_else(|| child_id(&parent, &id, board.generation(&id)));
        let parent = Parent { run: parent, child: id.clone(), detached };
        let options = RunOptions { tenant, limits, parent: Some(parent), ..RunOptions::default() };
        let started = Event::ChildStarted { child: id.clone(), run: run.clone(), workflow, input: input?, deadline, options };
        let key = Key::Child(id);
        board.ask(&key, Ask::Child { started: Box::new(started), recorded: false });
        Ok(Child { board, key, run })
    }
}

/// The id of a child: that of its parent and what the parent knows it by; a digest of that if it would be too long.
fn child_id(parent: &RunId, child: &StepId, generation: u32) -> RunId {
    let again = if generation > 1 { format!(".again-{}", generation - 1) } else { String::new() };
    let name = child.as_str().replace("child:", "").replace('#', ".");
    let digest = || format!("child/{}", steadfast_kernel::random::digest(&format!("{parent}/{child}/{generation}")));
    let readable = RunId::new(format!("{parent}/{name}{again}"));
    readable.or_else(|_| RunId::new(digest())).unwrap_or_else(|_| parent.clone())
}

/// A child that was started. Await it for its outcome.
pub struct Child {
    board: Arc<Board>,
    key: Key,
    run: RunId,
}

impl Child {
    /// The id of the run.
    pub fn run_id(&self) -> &RunId {
        &self.run
    }
}

impl Future for Child {
    type Output = Result<Payload, Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        match self.board.poll(&self.key, cx.waker()) {
            Gate::Done(outcome) => Poll::Ready(outcome),
            Gate::Wait | Gate::Run(_) | Gate::Doubt { .. } => Poll::Pending,
        }
    }
}
