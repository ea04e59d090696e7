//! What the outside of a run is told when something does not work.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;
use steadfast_kernel::{Failure, RunId, code};

/// Why a request or a run did not work.
///
/// Its `Debug` form is meant to be read: a `main` that returns this error shows what happened, the code, and what lies behind it.
#[derive(thiserror::Error)]
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
    /// Somebody else holds the lease.
    #[error("lease {name} is held{}; wait until it is free, or ask again later", by(owner.as_deref()))]
    LeaseHeld {
        /// The lease.
        name: String,
        /// Who holds it, if that is known.
        owner: Option<String>,
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

fn by(owner: Option<&str>) -> String {
    owner.map(|owner| format!(" by {owner}")).unwrap_or_default()
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} [{}]", self.code())?;
        if matches!(self, Error::Unreadable { .. }) {
            return Ok(()); // what the encoder says may quote the payload
        }
        let mut source = self.source();
        while let Some(inner) = source {
            write!(f, "\n  because: {inner}")?;
            source = inner.source();
        }
        Ok(())
    }
}

impl Error {
    /// The stable code; `docs/errors/` has a page for each.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Engine(error) => error.code(),
            Error::Store(error) => error.code(),
            Error::Failed { .. } => code::RUN_FAILED,
            Error::LeaseHeld { .. } => code::KEY_OWNED,
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
            Error::Failed { .. } | Error::LeaseHeld { .. } | Error::Unreadable { .. } => false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_that_returns_it_shows_what_to_do() {
        let locked = Error::from(steadfast_store::Error::Locked { path: "data/steadfast.lock".into() });
        let shown = "data/steadfast.lock is in use by another process; stop that one, or choose another data folder [SF0302]";
        assert_eq!(format!("{locked:?}"), shown);
        let full = steadfast_store::Error::unavailable("cannot commit", "no space left on device");
        assert_eq!(
            format!("{:?}", Error::from(full)),
            "the store is not available: cannot commit [SF0301]\n  because: no space left on device"
        );
    }

    #[test]
    fn what_cannot_be_read_is_not_quoted() {
        let source = serde_json::from_str::<u32>("\"a secret\"").unwrap_err();
        assert!(source.to_string().contains("secret"), "the encoder quotes it");
        let error = Error::Unreadable { what: "the result of run order-17".into(), source };
        assert_eq!(format!("{error:?}"), "the result of run order-17 cannot be turned into or from JSON [SF0107]");
    }
}
