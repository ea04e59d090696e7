//! Runs: in full, in lists, and their result.

use super::time::millis;
use super::{Data, Failure, RunTask, Step, Time, Wait};
use serde::{Deserialize, Serialize};
use steadfast_kernel as kernel;
use steadfast_runtime::RunView;
use steadfast_store::RunRow;
use utoipa::ToSchema;

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Status)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// It waits for a slot before it begins.
    Ready,
    /// Work is under way.
    Running,
    /// Nothing moves until something named happens.
    Waiting,
    /// Nothing new is begun until somebody resumes it.
    Paused,
    /// What it did is being undone.
    Compensating,
    /// Over, with a result.
    Completed,
    /// Over, with a failure.
    Failed,
    /// Over: it was called off.
    Cancelled,
    /// Its process died, and a person decides.
    Interrupted,
}

impl From<kernel::Status> for Status {
    fn from(status: kernel::Status) -> Self {
        match status {
            kernel::Status::Ready => Status::Ready,
            kernel::Status::Running => Status::Running,
            kernel::Status::Waiting => Status::Waiting,
            kernel::Status::Paused => Status::Paused,
            kernel::Status::Compensating => Status::Compensating,
            kernel::Status::Completed => Status::Completed,
            kernel::Status::Failed => Status::Failed,
            kernel::Status::Cancelled => Status::Cancelled,
            kernel::Status::Interrupted => Status::Interrupted,
        }
    }
}

impl From<Status> for kernel::Status {
    fn from(status: Status) -> Self {
        match status {
            Status::Ready => kernel::Status::Ready,
            Status::Running => kernel::Status::Running,
            Status::Waiting => kernel::Status::Waiting,
            Status::Paused => kernel::Status::Paused,
            Status::Compensating => kernel::Status::Compensating,
            Status::Completed => kernel::Status::Completed,
            Status::Failed => kernel::Status::Failed,
            Status::Cancelled => kernel::Status::Cancelled,
            Status::Interrupted => kernel::Status::Interrupted,
        }
    }
}

impl Status {
    /// True if nothing follows in this epoch.
    pub fn is_final(self) -> bool {
        kernel::Status::from(self).is_final()
    }

    /// The public name.
    pub fn as_str(self) -> &'static str {
        kernel::Status::from(self).as_str()
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Run)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its id.
    pub id: String,
    /// The workflow it executes.
    pub workflow: String,
    /// Where it stands.
    pub status: Status,
    /// Which of its lives; the first is 1, and every retry begins another.
    pub epoch: u32,
    /// What it waits for before anything else.
    pub wait: Option<Wait>,
    /// Everything it waits for: what a person has to see to first, then what ends first.
    pub waits: Vec<Wait>,
    /// What the code was given.
    pub input: Data,
    /// What the code returned, if it has; nothing before.
    #[serde(default)]
    #[schema(value_type = Data)]
    pub result: Option<Data>,
    /// Why it failed, if it has.
    pub failure: Option<Failure>,
    /// The last retry of any step.
    pub retry_context: Option<RetryContext>,
    /// When it began.
    pub started_at: Time,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// When it must be over.
    pub deadline_at: Option<Time>,
    /// Whose work it is.
    pub tenant: Option<String>,
    /// Whether it goes on by itself after its process died: `automatic` or `manual`.
    pub recovery: String,
    /// The run that started it.
    pub parent: Option<String>,
    /// The runs that it has started.
    pub children: Vec<Child>,
    /// What the code said last of how far it has come.
    pub note: Option<String>,
    /// How many events its journal has.
    pub events: u64,
    /// What makes it a task of a plan; nothing if it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<RunTask>,
    /// Its steps in the order of their beginning; only where a single run is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<Step>>,
}

/// The last retry of any step of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RetryContext)]
#[serde(rename_all = "camelCase")]
pub struct RetryContext {
    /// The attempt to come.
    pub current_attempt: u32,
    /// The delay before it, in milliseconds.
    pub last_backoff: u64,
}

/// A run that another run has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Child)]
#[serde(rename_all = "camelCase")]
pub struct Child {
    /// What the code knows it by.
    pub path: String,
    /// Its id.
    pub run: String,
}

impl From<&RunView> for Run {
    fn from(view: &RunView) -> Self {
        let waits: Vec<Wait> = view.waits.iter().map(Wait::from).collect();
        let outcome = view.ended.as_ref().map(|ended| &ended.outcome);
        Run {
            id: view.id.to_string(),
            workflow: view.workflow.to_string(),
            status: view.status.into(),
            epoch: view.epoch,
            wait: waits.first().cloned(),
            waits,
            input: (&view.input).into(),
            result: outcome.and_then(|outcome| outcome.as_ref().ok()).map(Data::from),
            failure: outcome.and_then(|outcome| outcome.as_ref().err()).map(Failure::from),
            retry_context: view
                .retry_context
                .map(|context| RetryContext { current_attempt: context.current_attempt, last_backoff: millis(context.last_backoff) }),
            started_at: Time(view.started_at),
            ended_at: view.ended.as_ref().map(|ended| Time(ended.at)),
            deadline_at: view.deadline_at.map(Time),
            tenant: view.tenant.clone(),
            recovery: recovery(view.recovery).into(),
            parent: view.parent.as_ref().map(ToString::to_string),
            children: view
                .children
                .iter()
                .map(|(child, run)| Child { path: child.to_string(), run: run.to_string() })
                .collect(),
            note: view.note.clone(),
            events: view.seq,
            task: view.task.as_deref().map(RunTask::from),
            steps: None,
        }
    }
}

/// The public name.
pub(crate) fn recovery(recovery: kernel::Recovery) -> &'static str {
    match recovery {
        kernel::Recovery::Automatic => "automatic",
        kernel::Recovery::Manual => "manual",
    }
}

/// A run as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RunSummary)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    /// Its id.
    pub id: String,
    /// The workflow it executes.
    pub workflow: String,
    /// Where it stands.
    pub status: Status,
    /// The reason of its primary wait, if nothing of it moves now: `BACKOFF`, `SIGNAL`, …
    pub wait: Option<String>,
    /// Why it, or a step that is tried again, failed, or what it said last of how far it has come.
    pub text: Option<String>,
    /// Whose work it is.
    pub tenant: Option<String>,
    /// When it began.
    pub started_at: Time,
    /// When it ended.
    pub ended_at: Option<Time>,
}

impl From<&RunRow> for RunSummary {
    fn from(row: &RunRow) -> Self {
        RunSummary {
            id: row.run.to_string(),
            workflow: row.workflow.to_string(),
            status: row.status.into(),
            wait: row.wait.clone(),
            text: row.text.clone(),
            tenant: row.tenant.clone(),
            started_at: Time(row.started_at),
            ended_at: row.ended_at.map(Time),
        }
    }
}

/// What came of a run, if anything has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RunResult)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// Its id.
    pub id: String,
    /// Where it stands.
    pub status: Status,
    /// What the code returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Data)]
    pub result: Option<Data>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl From<&RunView> for RunResult {
    fn from(view: &RunView) -> Self {
        let outcome = view.ended.as_ref().map(|ended| &ended.outcome);
        RunResult {
            id: view.id.to_string(),
            status: view.status.into(),
            result: outcome.and_then(|outcome| outcome.as_ref().ok()).map(Data::from),
            failure: outcome.and_then(|outcome| outcome.as_ref().err()).map(Failure::from),
        }
    }
}
