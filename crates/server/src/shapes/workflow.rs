//! Workflows that can be started here.

use super::{Data, PlanSettings, Time};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Every workflow that can be started here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Workflows)]
#[serde(rename_all = "camelCase")]
pub struct Workflows {
    /// In the order of their names.
    pub items: Vec<Workflow>,
}

/// A workflow: registered by code, read from a definition, or brought by a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Workflow)]
#[serde(rename_all = "camelCase")]
pub struct Workflow {
    /// Its name.
    pub name: String,
    /// What it is: a `workflow`, whose runs can be started, or a `plan`.
    #[serde(default = "workflow")]
    #[schema(examples("workflow"))]
    pub kind: String,
    /// Where it comes from: `code`, `definition` or `worker`.
    pub source: String,
    /// Whether its runs go on by themselves after their process died: `automatic` or `manual`.
    pub recovery: String,
    /// How many of its runs may be under way at once.
    pub slots: Option<u32>,
    /// What it is for, in the words of who wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Data)]
    pub input: Option<Data>,
    /// The names of its steps, in the order of the definition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// What goes for its plans, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanTerms>,
    /// The versions of its definition, newest first; the first is the one that new runs get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<Version>,
}

fn workflow() -> String {
    "workflow".into()
}

/// What goes for the plans of a definition that are created now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PlanTerms)]
#[serde(rename_all = "camelCase")]
pub struct PlanTerms {
    /// The names of its stages, in order.
    pub stages: Vec<String>,
    /// How it goes about its tasks.
    #[serde(flatten)]
    pub settings: PlanSettings,
}

/// A version of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Version)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// The hash of its text.
    pub hash: String,
    /// Since when it is kept.
    pub kept_at: Time,
}
