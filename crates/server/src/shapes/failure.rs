//! Why an attempt, a step or a run failed.

use super::time::millis;
use serde::{Deserialize, Serialize};
use steadfast_kernel as kernel;
use utoipa::ToSchema;

/// Why an attempt, a step or a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Failure)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Whether it may pass: `transient`, `permanent` or `poison`.
    #[schema(examples("transient"))]
    pub class: String,
    /// What went wrong, for programs.
    #[schema(examples("UNAVAILABLE"))]
    pub code: String,
    /// What went wrong, for people.
    pub message: String,
    /// What lies behind it, nearest first.
    pub causes: Vec<String>,
    /// How many attempts were made, once the engine has given up; zero before.
    pub attempts: u32,
    /// How many attempts were allowed, if they were used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// How long the other side asked us to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl From<&kernel::Failure> for Failure {
    fn from(failure: &kernel::Failure) -> Self {
        Failure {
            class: failure.class.as_str().into(),
            code: failure.code.as_str().into(),
            message: failure.message.clone(),
            causes: failure.causes.clone(),
            attempts: failure.attempts,
            max_attempts: failure.max_attempts,
            retry_after_ms: failure.retry_after.map(millis),
        }
    }
}
