//! Whether the server lives, and whether it can do its work.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The server answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Alive)]
#[serde(rename_all = "camelCase")]
pub struct Alive {
    /// Always `ok`.
    pub status: String,
}

/// The server can do its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Ready)]
#[serde(rename_all = "camelCase")]
pub struct Ready {
    /// Always true; what is not ready answers with a problem.
    pub ready: bool,
    /// `up`; `degraded` or `starting` if a dependency is, and it can do a part of its work: `dependencies` says which.
    pub status: String,
    /// What it depends on, one by one.
    pub dependencies: Vec<Dependency>,
}

/// Something that the server depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Dependency)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// Its name: `store`, `server`, `role` (what this instance is among those that work on the store), `redis`.
    pub name: String,
    /// Whether it does its work, or the server can do without it for now.
    pub ready: bool,
    /// `up`, `starting`, `degraded` or `down`.
    pub status: String,
    /// What is to be said about it; only to those who may know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
