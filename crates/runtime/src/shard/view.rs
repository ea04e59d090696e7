//! What can be seen of a run.

use std::collections::BTreeSet;
use steadfast_kernel::run::{Ended, Open, Recover, RetryContext};
use steadfast_kernel::{Epoch, Recovery, Run, RunId, Seq, Status, StepId, Timestamp, Wait, WorkflowName};
use steadfast_store::{RunRow, ShardId};

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
    /// What it waits for: what a person has to see to first, then what ends first.
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
    /// `begun` are the steps whose next attempt has begun after its delay, which is no event.
    pub(super) fn of(run: &Run, blocked: Option<&Wait>, begun: &BTreeSet<StepId>) -> Self {
        let (status, mut waits) = seen(run, blocked);
        waits.retain(|wait| !matches!(wait, Wait::Backoff { step, .. } if begun.contains(step)));
        let status = if status == Status::Waiting && !begun.is_empty() { Status::Running } else { status };
        RunView {
            id: run.id.clone(),
            workflow: run.workflow.clone(),
            status,
            waits,
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

/// Where a run stands and what it waits for, given why its code cannot go on. A run that stands still does not go on for another reason.
fn seen(run: &Run, blocked: Option<&Wait>) -> (Status, Vec<Wait>) {
    let (status, mut waits) = (run.status(), run.waits());
    let Some(blocked) = blocked.filter(|_| run.ended().is_none()) else { return (status, waits) };
    let stands_still = run.open().is_some_and(Open::stands_still);
    waits.insert(if stands_still { waits.len() } else { 0 }, blocked.clone());
    (if status == Status::Running { Status::Waiting } else { status }, waits)
}

/// What lists show of it: the same. A restart tries again whether its code can go on.
pub(super) fn row(shard: ShardId, run: &Run, blocked: Option<&Wait>) -> RunRow {
    let mut row = RunRow::of(shard, run);
    if let Some(blocked) = blocked.filter(|_| run.open().is_some_and(|open| !open.stands_still())) {
        row.status = seen(run, Some(blocked)).0;
        row.wait = Some(blocked.reason().to_string());
        row.recover = row.recover.or(Some(Recover::Host));
    }
    row
}
