//! Dead letters: what nobody will try again by itself.

use super::step::step_name;
use super::{Data, Failure, Time};
use serde::{Deserialize, Serialize};
use steadfast_kernel as kernel;
use steadfast_store::LetterRow;
use utoipa::ToSchema;

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Letter {
    /// Its id: `WORKFLOW.NUMBER`.
    #[schema(examples("checkout.17"))]
    pub id: String,
    /// What nobody will try again: `step`.
    pub kind: String,
    /// The workflow whose box it is in.
    pub workflow: String,
    /// The run.
    pub run: String,
    /// The name of the step.
    pub step: String,
    /// Its place in the run.
    pub path: String,
    /// Whose work it is.
    pub tenant: Option<String>,
    /// Why nobody will try it again.
    pub failure: Failure,
    /// Since when.
    pub added_at: Time,
    /// The attempt that failed; only where a single letter is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// What the run was given; only where a single letter is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Data)]
    pub payload: Option<Data>,
}

impl From<&LetterRow> for Letter {
    fn from(row: &LetterRow) -> Self {
        Letter {
            id: row.letter.to_string(),
            kind: "step".into(),
            workflow: row.letter.workflow.to_string(),
            run: row.run.to_string(),
            step: step_name(&row.step).into(),
            path: row.step.to_string(),
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
