//! What happens to a plan.

use super::Settings;
use crate::random::Seed;
use crate::{Epoch, Failure, Origin, Payload, RunId, TaskStatus, TenantId, Wants, WorkflowName};
use serde::{Deserialize, Serialize};

/// What happens to a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PlanEvent {
    /// The plan exists, and so do its tasks.
    Created(Box<PlanCreated>),
    /// Its tasks may begin.
    Started {
        /// Who wants it, and why.
        origin: Origin,
    },
    /// No other task begins.
    Paused {
        /// What for.
        cause: Cause,
        /// Who wants it, and why; what was found, if it was nobody.
        origin: Origin,
    },
    /// It goes on.
    Resumed {
        /// Who wants it, and why.
        origin: Origin,
    },
    /// All of its tasks are to end.
    CancelRequested {
        /// Who wants it, and why.
        origin: Origin,
        /// And what they did is to be undone.
        undo: bool,
    },
    /// A task says where it stands.
    TaskChanged {
        /// The task.
        task: RunId,
        /// Which of its lives.
        epoch: Epoch,
        /// Where it stands.
        status: TaskStatus,
        /// What it wants.
        wants: Wants,
        /// The last message of the plan that it had heard.
        heard: u64,
    },
    /// A task may begin.
    TaskAdmitted {
        /// The task.
        task: RunId,
        /// The epoch in which it asked.
        epoch: Epoch,
    },
    /// A task that was to begin is to wait for its turn again.
    TaskRecalled {
        /// The task.
        task: RunId,
        /// The epoch in which it asked.
        epoch: Epoch,
    },
    /// All tasks that were not called off are done.
    Completed,
    /// It has ended with tasks that have failed.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// It was called off, or all of its tasks were.
    Cancelled,
    /// What instances share cannot be reached: what follows from that for its tasks is in the text.
    Degraded {
        /// What was found, and what follows.
        why: String,
    },
    /// What instances share can be reached again.
    Restored {
        /// What was found, and what follows.
        why: String,
    },
}

/// A plan as it was created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanCreated {
    /// What its tasks execute.
    pub workflow: WorkflowName,
    /// The name of its definition, for people.
    pub definition: String,
    /// The version of the definition, by hash; nothing if it is code.
    pub version: Option<String>,
    /// The names of its stages, in order.
    pub stages: Vec<String>,
    /// Whom it is for, in order.
    pub tenants: Vec<TenantId>,
    /// Whom it leaves out because somebody else had their lock, and who had it.
    pub skipped: Vec<(TenantId, String)>,
    /// How it goes about it.
    pub settings: Settings,
    /// Where the chance of its tasks comes from.
    pub seed: Seed,
    /// Who wants it, and why.
    pub origin: Origin,
    /// What all of its tasks are given: the payload of the record.
    #[serde(skip, default = "nothing")]
    pub input: Payload,
}

fn nothing() -> Payload {
    Payload::json("{}")
}

/// Why a plan is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Cause {
    /// A person wants it.
    Person,
    /// Its process has died.
    Restart,
    /// As many tasks have failed as it was to stop at.
    StopWhen,
    /// A canary has not completed.
    Canary,
    /// Its time is over.
    Deadline,
    /// All that is left has to be decided on by a person.
    Interrupted,
}

impl Cause {
    /// The public name.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Person => "PERSON",
            Cause::Restart => "RESTART",
            Cause::StopWhen => "STOP_WHEN",
            Cause::Canary => "CANARY",
            Cause::Deadline => "DEADLINE",
            Cause::Interrupted => "INTERRUPTED",
        }
    }
}

impl PlanEvent {
    /// The stored and public type.
    pub fn kind(&self) -> &'static str {
        match self {
            PlanEvent::Created(_) => "PLAN_CREATED",
            PlanEvent::Started { .. } => "PLAN_STARTED",
            PlanEvent::Paused { .. } => "PLAN_PAUSED",
            PlanEvent::Resumed { .. } => "PLAN_RESUMED",
            PlanEvent::CancelRequested { undo: false, .. } => "PLAN_CANCEL_REQUESTED",
            PlanEvent::CancelRequested { undo: true, .. } => "PLAN_ROLLBACK_REQUESTED",
            PlanEvent::TaskChanged { .. } => "TASK_CHANGED",
            PlanEvent::TaskAdmitted { .. } => "TASK_ADMITTED",
            PlanEvent::TaskRecalled { .. } => "TASK_RECALLED",
            PlanEvent::Completed => "PLAN_COMPLETED",
            PlanEvent::Failed { .. } => "PLAN_FAILED",
            PlanEvent::Cancelled => "PLAN_CANCELLED",
            PlanEvent::Degraded { .. } => "DEGRADED",
            PlanEvent::Restored { .. } => "RESTORED",
        }
    }

    /// Who wanted it, and why.
    pub fn origin(&self) -> Option<&Origin> {
        match self {
            PlanEvent::Created(created) => Some(&created.origin),
            PlanEvent::Started { origin }
            | PlanEvent::Paused { origin, .. }
            | PlanEvent::Resumed { origin }
            | PlanEvent::CancelRequested { origin, .. } => Some(origin),
            PlanEvent::TaskChanged { .. }
            | PlanEvent::TaskAdmitted { .. }
            | PlanEvent::TaskRecalled { .. }
            | PlanEvent::Completed
            | PlanEvent::Failed { .. }
            | PlanEvent::Cancelled
            | PlanEvent::Degraded { .. }
            | PlanEvent::Restored { .. } => None,
        }
    }

    /// The task it is about.
    pub fn task(&self) -> Option<&RunId> {
        match self {
            PlanEvent::TaskChanged { task, .. } | PlanEvent::TaskAdmitted { task, .. } | PlanEvent::TaskRecalled { task, .. } => Some(task),
            _ => None,
        }
    }
}
