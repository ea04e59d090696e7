//! What verbs answer with, where it is not the run itself.

use super::{Run, Wait};
use serde::{Deserialize, Serialize};
use steadfast_kernel::run;
use steadfast_runtime as runtime;
use utoipa::ToSchema;

/// A signal was taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SignalReceived)]
#[serde(rename_all = "camelCase")]
pub struct SignalReceived {
    /// False if a signal of that id was there already; nothing has changed then.
    pub received: bool,
}

/// What a retry would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RetryPreview)]
#[serde(rename_all = "camelCase")]
pub struct RetryPreview {
    /// The epoch that would begin.
    pub epoch: u32,
    /// Steps on record that are executed again if the code comes to them.
    pub runs_again: Vec<String>,
    /// Steps of which what is on record is kept.
    pub kept: Vec<String>,
    /// Those of them that may have happened without a record: their probe, or a person, is asked first.
    pub in_doubt: Vec<String>,
    /// Steps that are not executed because their output is supplied.
    pub supplied: Vec<String>,
    /// Idempotency keys under which attempts were made before and are made again.
    pub repeated_keys: Vec<String>,
    /// Idempotency keys of work that was done before and is done once more, as new work.
    pub new_keys: Vec<String>,
    /// Children that are called off; the code starts others in their place.
    pub cancelled_children: Vec<String>,
    /// Other children that are not carried over.
    pub restarted_children: Vec<String>,
    /// Signals that were taken and have to be sent again.
    pub signals_asked_again: Vec<String>,
    /// Limits that a slot is asked of before it begins.
    pub slots: Vec<String>,
}

impl From<&run::Preview> for RetryPreview {
    fn from(preview: &run::Preview) -> Self {
        fn texts<T: ToString>(these: &[T]) -> Vec<String> {
            these.iter().map(ToString::to_string).collect()
        }
        RetryPreview {
            epoch: preview.epoch,
            runs_again: texts(&preview.runs_again),
            kept: texts(&preview.kept),
            in_doubt: texts(&preview.in_doubt),
            supplied: texts(&preview.supplied),
            repeated_keys: preview.repeated_keys.clone(),
            new_keys: preview.new_keys.clone(),
            cancelled_children: texts(&preview.cancelled_children),
            restarted_children: texts(&preview.restarted_children),
            signals_asked_again: preview.signals_asked_again.clone(),
            slots: texts(&preview.slots),
        }
    }
}

/// What a retry answers: the run, or with `dryRun` what would happen.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Retried)]
#[serde(untagged)]
pub enum Retried {
    /// The run in its new life.
    Run(Box<Run>),
    /// What would happen.
    Preview(Box<RetryPreview>),
}

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Replayed)]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    /// True if the code that is registered here does what the journal says.
    pub consistent: bool,
    /// How many events the journal has, those of earlier lives included.
    pub events: u64,
    /// Where they part, if they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mismatch: Option<Mismatch>,
}

/// Where code and journal part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Mismatch)]
#[serde(rename_all = "camelCase")]
pub struct Mismatch {
    /// The event at which they part.
    pub at: u64,
    /// What the journal holds.
    pub expected: String,
    /// What the code did.
    pub found: String,
}

impl From<&runtime::Replayed> for Replayed {
    fn from(replayed: &runtime::Replayed) -> Self {
        let mismatch = replayed.mismatch.as_ref().map(Wait::from);
        Replayed {
            consistent: mismatch.is_none(),
            events: replayed.events as u64,
            mismatch: match mismatch {
                Some(Wait::Mismatch { at, expected, found }) => Some(Mismatch { at, expected, found }),
                _ => None,
            },
        }
    }
}
