//! Dead letters: what nobody will try again by itself.

use super::step::step_name;
use super::{Data, Failure, Time};
use serde::{Deserialize, Serialize};
use steadfast_kernel::{self as kernel, LetterAbout, LetterHome};
use steadfast_store::{LetterKind, LetterRow};
use utoipa::ToSchema;

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Letter {
    /// Its id: `WORKFLOW.NUMBER`, `key:KEY.NUMBER` or `route:ROUTE.NUMBER`.
    #[schema(examples("checkout.17"))]
    pub id: String,
    /// What nobody will try again: a `step`, to tell of an `expiry`, or a `message`.
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
    /// What a message was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Whether a message was `received` or `sent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<String>,
    /// What a message was: a `call`, a `tell`, or a `frame` that nobody could read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_kind: Option<String>,
    /// Who sent a message, or was to have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The id that the one who sent a message gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Whose work it is.
    pub tenant: Option<String>,
    /// Why nobody will try it again.
    pub failure: Failure,
    /// Since when.
    pub added_at: Time,
    /// The attempt that failed, or how often a message was tried; only where a single letter is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// What the run was given, the value that the key had, or what the message said; only where a single letter is asked for. Bytes that are not JSON
    /// are `{"encoding": "bytes", "base64": "…"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Data)]
    pub payload: Option<Data>,
    /// How many bytes it has; only where a single letter is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl From<&LetterRow> for Letter {
    fn from(row: &LetterRow) -> Self {
        let workflow = match &row.letter.home {
            LetterHome::Workflow(workflow) => Some(workflow.to_string()),
            LetterHome::Key(_) | LetterHome::Route(_) => None,
        };
        let (key, revision) = match &row.about {
            LetterAbout::Expiry { key, revision } => (Some(key.to_string()), Some(*revision)),
            LetterAbout::Step { .. } | LetterAbout::Message { .. } => (None, None),
        };
        let message = match &row.about {
            LetterAbout::Message { route, direction, kind, peer, request } => Some((route, direction, kind, peer, request)),
            LetterAbout::Step { .. } | LetterAbout::Expiry { .. } => None,
        };
        Letter {
            id: row.letter.to_string(),
            kind: LetterKind::of(&row.about).as_str().into(),
            route: message.map(|(route, ..)| route.to_string()),
            direction: message.map(|(_, direction, ..)| direction.as_str().into()),
            message_kind: message.map(|(_, _, kind, ..)| kind.as_str().into()),
            peer: message.map(|(_, _, _, peer, _)| peer.clone()),
            request: message.map(|(.., request)| request.clone()),
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
            size: None,
        }
    }
}

impl From<&(LetterRow, kernel::Letter)> for Letter {
    fn from((row, letter): &(LetterRow, kernel::Letter)) -> Self {
        let size = Some(letter.payload.len() as u64);
        Letter { attempt: Some(letter.attempt), payload: Some((&letter.payload).into()), size, ..Letter::from(row) }
    }
}
