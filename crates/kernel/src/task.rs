//! A task: a run that is one tenant's part of a plan.

use crate::{Epoch, Failure, InstanceId, Origin, Payload, PlanId, RunId, Seq, StepId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What makes a run a task. It stands in `RUN_STARTED` and never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskOptions {
    /// The plan that it is part of.
    pub plan: PlanId,
    /// Whose lock it needs.
    pub tenant: TenantId,
    /// The names of its stages, in order.
    pub stages: Vec<String>,
    /// For how long its lock is its own without being renewed.
    pub lease: Duration,
    /// What becomes of the lock if it fails.
    pub on_failure: OnFailure,
    /// What it does if another task has the lock.
    pub conflict: Conflict,
}

/// What becomes of a tenant's lock if its task fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnFailure {
    /// It is kept until a person decides.
    #[default]
    Keep,
    /// Others may have it.
    Release,
}

/// What a plan does about tenants that are locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Conflict {
    /// It is refused as a whole; a task that finds its tenant locked later on waits for the lock.
    #[default]
    Refuse,
    /// It goes on without them.
    Skip,
}

/// The public status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskStatus {
    /// Its plan has not let it begin yet.
    Pending,
    /// A stage is under way.
    Running,
    /// Nothing moves until something named happens.
    Waiting,
    /// Nothing new is begun until somebody resumes it.
    Paused,
    /// Its process died, or its lock was lost, and a person decides.
    Interrupted,
    /// All stages are done.
    Completed,
    /// A stage has failed for good.
    Failed,
    /// It was called off.
    Cancelled,
    /// What it did is being undone.
    RollingBack,
    /// What it did is undone.
    RolledBack,
    /// Something that it did cannot be undone; a person has to look at it.
    RollbackFailed,
    /// Another instance goes on with it.
    HandedOver,
}

impl TaskStatus {
    /// Every status.
    pub const ALL: [TaskStatus; 12] = [
        TaskStatus::Pending,
        TaskStatus::Running,
        TaskStatus::Waiting,
        TaskStatus::Paused,
        TaskStatus::Interrupted,
        TaskStatus::Completed,
        TaskStatus::Failed,
        TaskStatus::Cancelled,
        TaskStatus::RollingBack,
        TaskStatus::RolledBack,
        TaskStatus::RollbackFailed,
        TaskStatus::HandedOver,
    ];

    /// The stored and public name.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskStatus::Pending => "PENDING",
            TaskStatus::Running => "RUNNING",
            TaskStatus::Waiting => "WAITING",
            TaskStatus::Paused => "PAUSED",
            TaskStatus::Interrupted => "INTERRUPTED",
            TaskStatus::Completed => "COMPLETED",
            TaskStatus::Failed => "FAILED",
            TaskStatus::Cancelled => "CANCELLED",
            TaskStatus::RollingBack => "ROLLING_BACK",
            TaskStatus::RolledBack => "ROLLED_BACK",
            TaskStatus::RollbackFailed => "ROLLBACK_FAILED",
            TaskStatus::HandedOver => "HANDED_OVER",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// True if nothing follows unless a person wants it.
    pub fn is_final(self) -> bool {
        match self {
            TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::Cancelled
            | TaskStatus::RolledBack
            | TaskStatus::RollbackFailed
            | TaskStatus::HandedOver => true,
            TaskStatus::Pending
            | TaskStatus::Running
            | TaskStatus::Waiting
            | TaskStatus::Paused
            | TaskStatus::Interrupted
            | TaskStatus::RollingBack => false,
        }
    }
}

/// How far a task has come, and what its stages have left for those after them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// The last stage that is done, counted from 0.
    pub index: u32,
    /// What the stages have left, as a JSON object.
    pub data: Payload,
    /// When it was saved.
    pub saved_at: Timestamp,
    /// The sequence of the event that says so: a later one is always higher.
    pub version: Seq,
}

/// A lock in the hand of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    /// The plan of the task.
    pub plan: PlanId,
    /// The task.
    pub task: RunId,
    /// The epoch in which it asked.
    pub epoch: Epoch,
    /// The number of this holding: higher than that of every one before it.
    pub fence: u64,
    /// For how long it holds without being renewed.
    pub lease: Duration,
    /// Until then, if it is not renewed.
    pub expires_at: Timestamp,
}

impl Lease {
    /// Whoever holds it, for people and programs: `PLAN:TASK`. Neither has a colon in it.
    pub fn holder(&self) -> String {
        format!("{}:{}", self.plan, self.task)
    }
}

/// What happens to a task beyond what happens to every run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TaskEvent {
    /// Its plan lets it begin.
    Admitted {
        /// The epoch in which it asked.
        epoch: Epoch,
    },
    /// Its plan wants it to wait for its turn again.
    Recalled {
        /// The epoch in which it asked.
        epoch: Epoch,
    },
    /// It has its tenant's lock.
    LockAcquired(Lease),
    /// Its tenant's lock is not its own any more.
    LockLost {
        /// Of this holding.
        fence: u64,
        /// Who took it away, and why; nobody if its time was over.
        origin: Origin,
    },
    /// It has all it needs, and begins.
    Started,
    /// Another instance began it, and this one goes on with it. What was done there follows.
    Adopted {
        /// Whose it was.
        from: Option<InstanceId>,
        /// Who wants it, and why.
        origin: Origin,
        /// When it first began.
        started_at: Option<Timestamp>,
        /// The number under which it is this instance's.
        fence: u64,
        /// The last stage that is done, counted from 0.
        index: Option<u32>,
        /// Its plan is not here.
        alone: bool,
        /// Some of it may be undone.
        #[serde(default, skip_serializing_if = "is_no")]
        half_undone: bool,
        /// What the stages so far have left for those after them: the payload of the record.
        #[serde(skip, default = "nothing")]
        data: Payload,
    },
    /// Another instance goes on with it.
    HandedOver {
        /// Which; whoever wants it, if there is none.
        to: Option<InstanceId>,
        /// Who wants it or found it, and why.
        origin: Origin,
    },
    /// A stage begins.
    StageStarted {
        /// The stage.
        stage: StepId,
        /// Which one, counted from 0.
        index: u32,
    },
    /// A stage is done.
    StageCompleted {
        /// The stage.
        stage: StepId,
        /// Which one, counted from 0.
        index: u32,
    },
    /// A stage has failed for good.
    StageFailed {
        /// The stage.
        stage: StepId,
        /// Which one, counted from 0.
        index: u32,
        /// Why.
        failure: Failure,
    },
    /// A stage is done, and that is where a retry goes on from.
    CheckpointSaved {
        /// The stage.
        stage: StepId,
        /// Which one, counted from 0.
        index: u32,
        /// What all stages so far have left for those after them: the payload of the record.
        #[serde(skip, default = "nothing")]
        data: Payload,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_no(yes: &bool) -> bool {
    !*yes
}

fn nothing() -> Payload {
    Payload::json("{}")
}

impl TaskEvent {
    /// The stored and public type.
    pub fn kind(&self) -> &'static str {
        match self {
            TaskEvent::Admitted { .. } => "TASK_ADMITTED",
            TaskEvent::Recalled { .. } => "TASK_RECALLED",
            TaskEvent::LockAcquired(_) => "LOCK_ACQUIRED",
            TaskEvent::LockLost { .. } => "LOCK_LOST",
            TaskEvent::Started => "TASK_STARTED",
            TaskEvent::Adopted { .. } => "TASK_ADOPTED",
            TaskEvent::HandedOver { .. } => "TASK_HANDED_OVER",
            TaskEvent::StageStarted { .. } => "STAGE_STARTED",
            TaskEvent::StageCompleted { .. } => "STAGE_COMPLETED",
            TaskEvent::StageFailed { .. } => "STAGE_FAILED",
            TaskEvent::CheckpointSaved { .. } => "CHECKPOINT_SAVED",
        }
    }

    /// The stage it is about.
    pub fn stage(&self) -> Option<&StepId> {
        match self {
            TaskEvent::StageStarted { stage, .. }
            | TaskEvent::StageCompleted { stage, .. }
            | TaskEvent::StageFailed { stage, .. }
            | TaskEvent::CheckpointSaved { stage, .. } => Some(stage),
            TaskEvent::Admitted { .. }
            | TaskEvent::Recalled { .. }
            | TaskEvent::LockAcquired(_)
            | TaskEvent::LockLost { .. }
            | TaskEvent::Started
            | TaskEvent::Adopted { .. }
            | TaskEvent::HandedOver { .. } => None,
        }
    }
}

/// The id of a tenant's task in a plan: `PLAN/TENANT`, or the beginning of both and a digest if that is too long.
pub fn task_id(plan: &PlanId, tenant: &TenantId) -> RunId {
    let short = |text: &str| text.chars().take(40).collect::<String>().replace('/', "-");
    RunId::new(format!("{plan}/{tenant}")).unwrap_or_else(|_too_long| {
        let digest = crate::random::digest(&format!("{plan}\n{tenant}"));
        let id = format!("{}.{}.{digest}", short(plan.as_str()), short(tenant.as_str()));
        RunId::new(id).unwrap_or_else(|_| unreachable!("the parts of two ids make an id"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_an_id_whatever_its_plan_and_tenant_are_called() {
        let (plan, tenant) = (PlanId::new("switch-17").unwrap(), TenantId::new("acme/eu").unwrap());
        assert_eq!(task_id(&plan, &tenant).as_str(), "switch-17/acme/eu");
        let long = |c: char| format!("{}/{}", ".-".repeat(30), c.to_string().repeat(60));
        let ids =
            [('a', 'b'), ('a', 'c'), ('b', 'b')].map(|(p, t)| task_id(&PlanId::new(long(p)).unwrap(), &TenantId::new(long(t)).unwrap()));
        assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{ids:?}");
    }

    #[test]
    fn statuses_survive_being_stored() {
        for status in TaskStatus::ALL {
            assert_eq!(TaskStatus::parse(status.as_str()), Some(status));
        }
        assert_eq!(TaskStatus::parse("pending"), None);
    }
}
