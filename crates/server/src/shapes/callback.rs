//! Ends of keys that are still to be told.

use super::{Failure, Time};
use serde::{Deserialize, Serialize};
use steadfast_store::CallbackRow;
use utoipa::ToSchema;

/// The end of a key that is still to be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Callback)]
#[serde(rename_all = "camelCase")]
pub struct Callback {
    /// The key.
    #[schema(examples("session:42"))]
    pub key: String,
    /// The revision that ended.
    pub revision: u64,
    /// Who is told: an address without its query, `run WORKFLOW`, `handler`, or `keys below` where the keys below it have to end first.
    pub target: String,
    /// When its time was over.
    pub ended_at: Time,
    /// The attempt to come, or under way.
    pub attempt: u32,
    /// How many attempts there are in all, once one has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
    /// When that attempt is due; the first one is due at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Time>,
    /// Why the attempt before it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl From<&CallbackRow> for Callback {
    fn from(row: &CallbackRow) -> Self {
        Callback {
            key: row.key.to_string(),
            revision: row.revision,
            target: row.target.clone(),
            ended_at: Time(row.ended_at),
            attempt: row.attempt,
            of: row.of,
            next_attempt_at: row.next_at.map(Time),
            failure: row.failure.as_ref().map(Failure::from),
        }
    }
}
