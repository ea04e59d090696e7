//! What can be seen of a run.

use steadfast_kernel::run::{Ended, RetryContext};
use steadfast_kernel::{Epoch, Recovery, Run, RunId, Seq, Status, StepId, Timestamp, Wait, WorkflowName};

/// A run as it stood at its last commit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunView {
    /// Its id.
    pub id: RunId,
    /// The code it executes.
    pub workflow: WorkflowName,
    /// Where it stands.
    pub status: Status,
    /// What it waits for, the one that ends first in front.
    pub waits: Vec<Wait>,
    /// Which of its lives.
    pub epoch: Epoch,
    /// The number of entries in its journal.
    pub seq: Seq,
    /// When it began.
    pub started_at: Timestamp,
    /// When it must be over.
    pub deadline_at: Option<Timestamp>,
    /// How it has ended, if it has.
    pub ended: Option<Ended>,
    /// The last retry of any step.
    pub retry_context: Option<RetryContext>,
    /// Whose work it is.
    pub tenant: Option<String>,
    /// Whether it goes on by itself after its process died.
    pub recovery: Recovery,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// The runs that it has started, by what its code knows them by.
    pub children: Vec<(StepId, RunId)>,
    /// What the code said last of how far it has come.
    pub note: Option<String>,
}

impl RunView {
    pub(super) fn of(run: &Run, blocked: Option<&Wait>) -> Self {
        let blocked = blocked.filter(|_| run.ended().is_none());
        RunView {
            id: run.id.clone(),
            workflow: run.workflow.clone(),
            status: if blocked.is_some() && run.status() == Status::Running { Status::Waiting } else { run.status() },
            waits: blocked.cloned().into_iter().chain(run.waits()).collect(),
            epoch: run.epoch,
            seq: run.seq,
            started_at: run.started_at,
            deadline_at: run.deadline.map(|deadline| deadline.at),
            ended: run.ended().cloned(),
            retry_context: run.retry_context,
            tenant: run.options.tenant.clone(),
            recovery: run.options.recovery,
            parent: run.options.parent.as_ref().map(|parent| parent.run.clone()),
            children: run.children().map(|(child, run)| (child.clone(), run.clone())).collect(),
            note: run.note.clone(),
        }
    }
}
