//! What the outside of a run is told when something does not work.

use std::time::Duration;
use steadfast_kernel::{Failure, RunId, code};

/// Why a request or a run did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine could not do what was asked.
    #[error(transparent)]
    Engine(#[from] steadfast_runtime::Error),
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] steadfast_store::Error),
    /// The run failed.
    #[error("run {run} failed: {failure}")]
    Failed {
        /// The run.
        run: RunId,
        /// Why.
        failure: Failure,
    },
    /// A value cannot be written as JSON, or JSON cannot be read as the value that was asked for.
    #[error("{what} cannot be turned into or from JSON")]
    Unreadable {
        /// Which value.
        what: String,
        /// What the encoder said.
        #[source]
        source: serde_json::Error,
    },
}

impl Error {
    /// The stable code; `docs/errors/` has a page for each.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Engine(error) => error.code(),
            Error::Store(error) => error.code(),
            Error::Failed { .. } => code::RUN_FAILED,
            Error::Unreadable { .. } => code::PAYLOAD_UNREADABLE,
        }
    }

    /// The failure of the run, if that is what it was.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Error::Failed { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// True if the same request may succeed later without anybody changing anything.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Engine(error) => error.is_retryable(),
            Error::Store(error) => error.is_retryable(),
            Error::Failed { .. } | Error::Unreadable { .. } => false,
        }
    }

    /// When to come back, for what may pass.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Engine(error) => error.retry_after(),
            _ => None,
        }
    }
}
