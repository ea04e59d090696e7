//! Workers: other processes that host runs.

use super::Time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Every worker that is connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Workers)]
#[serde(rename_all = "camelCase")]
pub struct Workers {
    /// In the order of their names.
    pub items: Vec<Worker>,
}

/// A process that is connected and hosts runs for this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Worker)]
#[serde(rename_all = "camelCase")]
pub struct Worker {
    /// Its name.
    pub name: String,
    /// The workflows that it has the code of.
    pub workflows: Vec<String>,
    /// How many runs it hosts.
    pub runs: u64,
    /// How many it hosts at the most.
    pub runs_max: u64,
    /// Since when it is connected.
    pub since: Time,
    /// When it was last heard of.
    pub heard_at: Time,
    /// It is given no more runs, and goes when those that it has are done or given back.
    pub draining: bool,
}

impl From<steadfast_runtime::WorkerView> for Worker {
    fn from(view: steadfast_runtime::WorkerView) -> Self {
        Worker {
            name: view.name,
            workflows: view.workflows.iter().map(ToString::to_string).collect(),
            runs: view.sessions as u64,
            runs_max: view.sessions_max as u64,
            since: Time(view.since),
            heard_at: Time(view.heard_at),
            draining: view.draining,
        }
    }
}
