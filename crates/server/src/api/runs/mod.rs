//! Runs: started, listed, looked at, waited for, and operated.

pub(super) mod list;
pub(super) mod operate;
pub(super) mod result;
pub(super) mod retry;
pub(super) mod show;
pub(super) mod start;

use crate::app::App;
use crate::problem::Problem;
use std::time::Duration;
use steadfast_kernel::RunId;

impl App {
    /// Waits for the end of a run, but no longer than that, than the server allows, or than the server runs.
    async fn wait_for(&self, run: &RunId, wait_ms: u64) -> Result<(), Problem> {
        if wait_ms == 0 {
            return Ok(());
        }
        let wait = Duration::from_millis(wait_ms).min(self.config.wait_max);
        tokio::select! {
            biased;
            ended = tokio::time::timeout(wait, self.engine.ended(run)) => match ended {
                Ok(Err(error)) => Err(error.into()),
                Ok(Ok(_)) | Err(_) => Ok(()),
            },
            () = self.closing.cancelled() => Ok(()),
        }
    }
}
