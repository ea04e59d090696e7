//! The steps of a run, with their attempts.

use super::time::millis;
use super::{Data, Failure, Time};
use serde::{Deserialize, Serialize};
use steadfast_kernel::StepId;
use steadfast_runtime::{self as runtime, StepView};
use utoipa::ToSchema;

/// A step of a run that has begun, or that the run's definition names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Step)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Its name in the code or the definition.
    #[schema(examples("charge"))]
    pub name: String,
    /// Its place in the run: `BRANCH/NAME#OCCURRENCE`.
    #[schema(examples("charge#1"))]
    pub path: String,
    /// What it is: `step`, `sleep`, `signal` or `child`.
    #[serde(default)]
    #[schema(examples("step"))]
    pub kind: String,
    /// Where it stands.
    pub status: StepStatus,
    /// How many attempts were begun.
    pub attempts: u32,
    /// When its first attempt began.
    pub started_at: Option<Time>,
    /// When it had its outcome.
    pub ended_at: Option<Time>,
    /// When it is tried again.
    pub next_attempt_at: Option<Time>,
    /// What it returned.
    #[serde(default)]
    #[schema(value_type = Data)]
    pub output: Option<Data>,
    /// Why it, or its last attempt, failed.
    pub failure: Option<Failure>,
    /// Its attempts, one by one, as far as they are on record.
    #[serde(default)]
    pub tries: Vec<Try>,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = StepStatus)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StepStatus {
    /// It has not begun.
    Pending,
    /// An attempt is in flight.
    Running,
    /// An attempt has failed, and the next one has its time.
    Backoff,
    /// It has its result.
    Completed,
    /// It has failed for good.
    Failed,
    /// It is not executed.
    Skipped,
    /// It is being undone.
    Undoing,
    /// It was undone.
    Undone,
    /// Nobody knows whether its last attempt happened.
    InDoubt,
}

impl StepStatus {
    /// The public name.
    pub fn as_str(self) -> &'static str {
        match self {
            StepStatus::Pending => "PENDING",
            StepStatus::Running => "RUNNING",
            StepStatus::Backoff => "BACKOFF",
            StepStatus::Completed => "COMPLETED",
            StepStatus::Failed => "FAILED",
            StepStatus::Skipped => "SKIPPED",
            StepStatus::Undoing => "UNDOING",
            StepStatus::Undone => "UNDONE",
            StepStatus::InDoubt => "IN_DOUBT",
        }
    }
}

/// One attempt of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Try)]
#[serde(rename_all = "camelCase")]
pub struct Try {
    /// Its number, counted from 1.
    pub attempt: u32,
    /// When it began.
    pub started_at: Option<Time>,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// The delay before the next one.
    pub backoff_ms: Option<u64>,
}

impl Step {
    /// What people call it: its name in the definition, with the number of the item if it is one of many (`send[2]`); in code its path, without what goes without saying.
    pub fn label(&self) -> String {
        if !["", "step", "sleep", "signal", "child"].contains(&self.kind.as_str()) {
            return match item(&self.path) {
                Some(item) => format!("{}[{item}]", self.name),
                None => self.name.clone(),
            };
        }
        let path = self.path.strip_suffix("#1").unwrap_or(&self.path);
        path.replace("sleep:", "sleep").replace("signal:", "").replace("child:", "")
    }
}

/// Which item of a `foreach` it is: 2 of `send#1/all#1.2/send#1`.
fn item(path: &str) -> Option<&str> {
    let branch = path.split('/').nth(1)?;
    branch.strip_prefix("all#1.").or_else(|| branch.strip_prefix("some#1."))
}

impl From<&StepView> for Step {
    fn from(view: &StepView) -> Self {
        Step {
            name: step_name(&view.id).into(),
            path: view.id.to_string(),
            kind: view.kind.as_str().into(),
            status: view.status.into(),
            attempts: view.attempts,
            started_at: Some(Time(view.started_at)),
            ended_at: view.ended_at.map(Time),
            next_attempt_at: view.next_attempt_at.map(Time),
            output: view.output.as_ref().map(Data::from),
            failure: view.failure.as_ref().map(Failure::from),
            tries: view.tries.iter().map(Try::from).collect(),
        }
    }
}

impl From<&runtime::Try> for Try {
    fn from(made: &runtime::Try) -> Self {
        Try {
            attempt: made.attempt,
            started_at: Some(Time(made.started_at)),
            ended_at: made.ended_at.map(Time),
            failure: made.failure.as_ref().map(Failure::from),
            backoff_ms: made.backoff.map(millis),
        }
    }
}

impl From<runtime::StepStatus> for StepStatus {
    fn from(status: runtime::StepStatus) -> Self {
        match status {
            runtime::StepStatus::Pending => StepStatus::Pending,
            runtime::StepStatus::Running => StepStatus::Running,
            runtime::StepStatus::Backoff => StepStatus::Backoff,
            runtime::StepStatus::Completed => StepStatus::Completed,
            runtime::StepStatus::Failed => StepStatus::Failed,
            runtime::StepStatus::Skipped => StepStatus::Skipped,
            runtime::StepStatus::Undoing => StepStatus::Undoing,
            runtime::StepStatus::Undone => StepStatus::Undone,
            runtime::StepStatus::InDoubt => StepStatus::InDoubt,
        }
    }
}

/// The name of a step without its branch and its occurrence.
pub fn step_name(step: &StepId) -> &str {
    let last = step.as_str().rsplit('/').next().unwrap_or_default();
    last.rsplit_once('#').map_or(last, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_call_a_step_by_its_name_in_the_definition() {
        let label = |name: &str, kind: &str, path: &str| {
            let step = serde_json::json!({ "name": name, "path": path, "kind": kind, "status": "RUNNING", "attempts": 1 });
            serde_json::from_value::<Step>(step).unwrap().label()
        };
        assert_eq!(label("cool-down", "wait", "cool-down#1/sleep:#1"), "cool-down");
        assert_eq!(label("send", "http", "send#1/all#1.2/send#1"), "send[2]");
        assert_eq!(label("charge", "step", "charge#1"), "charge");
        assert_eq!(label("charge", "step", "left#1/charge#2"), "left#1/charge#2");
        assert_eq!(label("sleep:", "sleep", "sleep:#1"), "sleep");
        assert_eq!(label("signal:paid", "signal", "signal:paid#1"), "paid");
    }

    #[test]
    fn a_name_has_neither_branch_nor_occurrence() {
        assert_eq!(step_name(&StepId::new("all#1.2/left", "charge", 3).unwrap()), "charge");
        assert_eq!(step_name(&StepId::new("", "ship", 1).unwrap()), "ship");
    }
}
