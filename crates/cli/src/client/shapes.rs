//! What the command line reads of the API's answers: only what it shows, so that it understands servers that say more than this version knows.

use serde::Deserialize;
use serde_json::value::RawValue;

/// One page of a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    #[serde(default)]
    pub(crate) next_cursor: Option<String>,
}

/// A run, in full or as lists show it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) workflow: String,
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) epoch: u32,
    #[serde(default)]
    pub(crate) waits: Vec<Wait>,
    #[serde(default)]
    pub(crate) input: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) result: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) failure: Option<Failure>,
    #[serde(default)]
    pub(crate) started_at: Option<String>,
    #[serde(default)]
    pub(crate) ended_at: Option<String>,
    #[serde(default)]
    pub(crate) deadline_at: Option<String>,
    #[serde(default)]
    pub(crate) tenant: Option<String>,
    #[serde(default)]
    pub(crate) parent: Option<String>,
    #[serde(default)]
    pub(crate) note: Option<String>,
    #[serde(default)]
    pub(crate) steps: Vec<Step>,
}

impl Run {
    /// True if nothing follows unless somebody wants it.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.status.as_str(), "COMPLETED" | "FAILED" | "CANCELLED")
    }
}

/// A run in a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    pub(crate) id: String,
    pub(crate) workflow: String,
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) wait: Option<String>,
    #[serde(default)]
    pub(crate) text: Option<String>,
    #[serde(default)]
    pub(crate) tenant: Option<String>,
    #[serde(default)]
    pub(crate) started_at: Option<String>,
    #[serde(default)]
    pub(crate) ended_at: Option<String>,
}

/// Why a run does not move. Which fields there are depends on the reason.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Wait {
    pub(crate) reason: String,
    pub(crate) step: Option<String>,
    pub(crate) attempt: Option<u32>,
    pub(crate) of: Option<u32>,
    pub(crate) due_at: Option<String>,
    pub(crate) until: Option<String>,
    pub(crate) since: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) roles: Vec<String>,
    pub(crate) by: Option<String>,
    pub(crate) why: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) position: Option<u64>,
    pub(crate) run: Option<String>,
    pub(crate) workflow: Option<String>,
    pub(crate) at: Option<u64>,
    pub(crate) expected: Option<String>,
    pub(crate) found: Option<String>,
    pub(crate) failure: Option<Failure>,
}

/// Why something failed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Failure {
    pub(crate) class: String,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
    pub(crate) attempts: u32,
}

/// A step of a run.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    pub(crate) path: String,
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) attempts: u32,
    #[serde(default)]
    pub(crate) started_at: Option<String>,
    #[serde(default)]
    pub(crate) ended_at: Option<String>,
    #[serde(default)]
    pub(crate) next_attempt_at: Option<String>,
    #[serde(default)]
    pub(crate) failure: Option<Failure>,
    #[serde(default)]
    pub(crate) tries: Vec<Try>,
}

/// One attempt of a step.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Try {
    #[serde(default)]
    pub(crate) started_at: Option<String>,
    #[serde(default)]
    pub(crate) ended_at: Option<String>,
    #[serde(default)]
    pub(crate) failure: Option<Failure>,
}

/// An event of a journal, in its public shape.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    pub(crate) event_type: String,
    pub(crate) sequence: u64,
    pub(crate) timestamp: String,
    #[serde(default)]
    pub(crate) payload: serde_json::Value,
    #[serde(default)]
    pub(crate) attempt_number: Option<u32>,
    #[serde(default)]
    pub(crate) backoff_delay_ms: Option<u64>,
    #[serde(default)]
    pub(crate) failure_reason: Option<String>,
}

/// A dead letter.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Letter {
    pub(crate) id: String,
    pub(crate) run: String,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) tenant: Option<String>,
    pub(crate) failure: Failure,
    pub(crate) added_at: String,
    #[serde(default)]
    pub(crate) attempt: Option<u32>,
    #[serde(default)]
    pub(crate) payload: Option<Box<RawValue>>,
}
