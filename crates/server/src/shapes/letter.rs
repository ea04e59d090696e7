//! Dead letters: what nobody will try again by itself.

use super::step::step_name;
use super::{Data, Failure, Time};
use serde::{Deserialize, Serialize};
use steadfast_kernel::{self as kernel, LetterAbout, LetterHome};
use steadfast_store::LetterRow;
use utoipa::ToSchema;

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Letter {
    /// Its id: `WORKFLOW.NUMBER`, or `key:KEY.NUMBER`.
    #[schema(examples("checkout.17"))]
    pub id: String,
    /// What nobody will try again: a `step`, or to tell of an `expiry`.
    #[schema(examples("step"))]
    pub kind: String,
    /// The workflow of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The run of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The name of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Its place in the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The key that has expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The revision of it that has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Whose work it is.
    pub tenant: Option<String>,
    /// Why nobody will try it again.
    pub failure: Failure,
    /// Since when.
    pub added_at: Time,
    /// The attempt that failed; only where a single letter is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// What the run was given, or the value that the key had; only where a single letter is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Data)]
    pub payload: Option<Data>,
}

impl From<&LetterRow> for Letter {
    fn from(row: &LetterRow) -> Self {
        let workflow = match &row.letter.home {
            LetterHome::Workflow(workflow) => Some(workflow.to_string()),
            LetterHome::Key(_) => None,
        };
        let (kind, key, revision) = match &row.about {
            LetterAbout::Step { .. } => ("step", None, None),
            LetterAbout::Expiry { key, revision } => ("expiry", Some(key.to_string()), Some(*revision)),
        };
        Letter {
            id: row.letter.to_string(),
            kind: kind.into(),
            workflow,
            run: row.about.run().map(ToString::to_string),
            step: row.about.step().map(|step| step_name(step).into()),
            path: row.about.step().map(ToString::to_string),
            key,
            revision,
            tenant: row.tenant.clone(),
            failure: (&row.failure).into(),
            added_at: Time(row.added_at),
            attempt: None,
            payload: None,
        }
    }
}

impl From<&(LetterRow, kernel::Letter)> for Letter {
    fn from((row, letter): &(LetterRow, kernel::Letter)) -> Self {
        Letter { attempt: Some(letter.attempt), payload: Some((&letter.payload).into()), ..Letter::from(row) }
    }
}
