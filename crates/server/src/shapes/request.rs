//! What is asked of the server: bodies of requests. Unknown fields are errors.

use super::Data;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Start a run, or find the one of that id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = StartRun)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartRun {
    /// The workflow to execute.
    #[schema(examples("checkout"), pattern = r"^[A-Za-z0-9._/-]{1,128}$")]
    pub workflow: String,
    /// What the code is given; `null` if it is left out.
    #[serde(default = "Data::null")]
    pub input: Data,
    /// The id; one is made if it is left out. It makes the start idempotent: the same id and input again is the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("order-17"), pattern = r"^[A-Za-z0-9._/-]{1,128}$")]
    pub id: Option<String>,
    /// How long the run may take in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub deadline_ms: Option<u64>,
    /// Whose work it is; lists can be asked for one tenant's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = r"^[A-Za-z0-9._/-]{1,128}$")]
    pub tenant: Option<String>,
    /// How long the answer may wait for the end of the run. The server has a bound for it, 60 seconds unless it is configured otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// Create a plan, or find the one of that id. Nothing of it begins before it is started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = CreatePlan)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreatePlan {
    /// The name of its definition.
    #[schema(examples("switch"), pattern = r"^[A-Za-z0-9._/-]{1,128}$")]
    pub definition: String,
    /// Whom it is for, in order; one who is named twice is one.
    #[schema(min_items = 1, max_items = 10000)]
    pub tenants: Vec<String>,
    /// How many tasks may be under way at once; as the definition says if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_concurrency: Option<u32>,
    /// The id; one is made if it is left out. It makes the creation idempotent: the same again is the same plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("switch-17"), pattern = r"^[A-Za-z0-9._/-]{1,128}$")]
    pub id: Option<String>,
    /// What all of its tasks are given: a JSON object; an empty one if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, Data>>)]
    pub vars: Option<Data>,
    /// Why; kept on record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4096)]
    pub reason: Option<String>,
}

/// Begin another life of a tenant's task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RetryTask)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryTask {
    /// Go on after the last stage that is done; if not, all stages begin again.
    #[serde(default = "yes")]
    pub from_checkpoint: bool,
    /// Why; kept on record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4096)]
    pub reason: Option<String>,
}

fn yes() -> bool {
    true
}

impl Default for RetryTask {
    fn default() -> Self {
        RetryTask { from_checkpoint: true, reason: None }
    }
}

/// Why something is asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Reason)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reason {
    /// Why; kept on record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4096)]
    pub reason: Option<String>,
}

/// Call a run off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = CancelRun)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CancelRun {
    /// Why; kept on record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4096)]
    pub reason: Option<String>,
    /// End it at once: nothing is undone.
    #[serde(default)]
    pub terminate: bool,
}

/// Begin another life of a run that has ended, is interrupted, or waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RetryRun)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryRun {
    /// The step from which it begins again, named as in the journal (`BRANCH/NAME#OCCURRENCE`; a name alone is its first occurrence outside of
    /// branches). Without it the run begins at the step that failed, or where it stopped; an empty text means from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("charge"))]
    pub from_step: Option<String>,
    /// Only say what would happen; nothing changes.
    #[serde(default)]
    pub dry_run: bool,
    /// What the code is given instead of its input; then it begins from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Data)]
    pub input: Option<Data>,
    /// Steps that are not executed, and what they are to have returned.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, Data>,
    /// Why; kept on record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4096)]
    pub reason: Option<String>,
}

/// Tell a run something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SendSignal)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendSignal {
    /// What it says; `null` if it is left out. For an approval: `{"approved": true}`.
    #[serde(default = "Data::null")]
    pub payload: Data,
    /// What tells it from others: the same again is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub signal_id: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4096)]
    pub reason: Option<String>,
}

impl Default for SendSignal {
    fn default() -> Self {
        SendSignal { payload: Data::null(), signal_id: None, reason: None }
    }
}
