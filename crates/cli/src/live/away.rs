//! A server that does not answer while somebody waits for it: it may be started again.

use crate::error::Error;
use crate::output::time;
use std::time::Duration;
use steadfast_kernel::Timestamp;

/// How long it is waited for: a restart takes less.
const RESTART_MAX: Duration = Duration::from_secs(60);

/// Since when it does not answer.
#[derive(Debug, Default)]
pub(crate) struct Away(Option<Timestamp>);

impl Away {
    /// It answers.
    pub(crate) fn is_back(&mut self) {
        self.0 = None;
    }

    /// Whether it is waited for.
    pub(crate) fn is_away(&self) -> bool {
        self.0.is_some()
    }

    /// It did not answer; true if that is new.
    ///
    /// # Errors
    /// If something else is wrong, or it stays away.
    pub(crate) fn tolerate(&mut self, error: Error) -> Result<bool, Error> {
        if !matches!(error, Error::Unreachable(_)) {
            return Err(error);
        }
        let now = time::now();
        match self.0 {
            None => {
                self.0 = Some(now);
                Ok(true)
            }
            Some(since) if now.saturating_since(since) < RESTART_MAX => Ok(false),
            Some(_) => Err(error),
        }
    }
}
