//! Dead letters: what nobody will try again by itself.

use super::step::step_name;
use super::{Data, Failure, Time};
use serde::{Deserialize, Serialize};
use steadfast_kernel::{self as kernel, LetterAbout, LetterHome};
use steadfast_store::{LetterKind, LetterRow};
use utoipa::ToSchema;

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Letter)]
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

/// Which dead letters are to be tried again, and how; all that is given has to apply to them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RedriveLetters)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RedriveLetters {
    /// Steps of runs of that workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Messages of that route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Expiries of that key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Expiries of keys whose names begin so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    /// What they are about: `step`, `expiry` or `message`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whose work they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The class of their failure: `transient`, `permanent` or `poison`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The code of their failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("UNAVAILABLE"))]
    pub code: Option<String>,
    /// There since that time, or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_after: Option<Time>,
    /// There since before that time; only those that are there when this begins are tried in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_before: Option<Time>,
    /// At most so many in a second; as fast as it goes if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10000)]
    pub per_second: Option<u32>,
    /// At most so many; 1000 if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100000)]
    pub limit: Option<u64>,
    /// Only counts them.
    #[serde(default)]
    pub dry_run: bool,
    /// Goes on where another one stopped: its `nextCursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Why; kept on record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4096)]
    pub reason: Option<String>,
}

/// What came of trying many dead letters again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = LettersRedriven)]
#[serde(rename_all = "camelCase")]
pub struct LettersRedriven {
    /// So many would be tried; only where they were only counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matching: Option<u64>,
    /// So many were tried again.
    pub redriven: u64,
    /// So many were not, or failed again: they are still there.
    pub refused: u64,
    /// Why, of the first ten.
    pub reasons: Vec<LetterRefused>,
    /// There may be others that were not tried: the limit was reached, or the time of a request.
    pub more: bool,
    /// Where another request goes on, so that nothing is tried twice.
    pub next_cursor: Option<String>,
    /// Letters that came at that time or later were left alone. A request that goes on says so, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_before: Option<Time>,
}

/// A dead letter that was not tried again, or failed again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = LetterRefused)]
#[serde(rename_all = "camelCase")]
pub struct LetterRefused {
    /// Its id.
    pub letter: String,
    /// The stable code of why.
    #[schema(examples("SF0113"))]
    pub code: String,
    /// Why, for people.
    pub detail: String,
}
