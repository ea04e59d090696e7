//! What every error looks like: an RFC 9457 problem document.

use super::{Dependency, Locked};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not carried out, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Problem)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The page about it, relative to the documentation.
    #[serde(rename = "type")]
    #[schema(examples("docs/errors/SF0104"))]
    pub kind: String,
    /// What it is, the same for every problem of this code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong with this request, and what to do.
    pub detail: String,
    /// The path that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Stable: it is never given a second meaning.
    #[schema(examples("SF0104"))]
    pub code: String,
    /// What the server depends on, where that is what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Vec<Dependency>>,
    /// Tenants whose locks others have, where that is why; all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked: Option<Vec<Locked>>,
}
