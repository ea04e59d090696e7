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
use steadfast_runtime::RunView;

impl App {
    /// A run, once it has ended; but no later than after that time, than the server allows, or than the server runs.
    async fn wait_for(&self, run: &RunId, wait_ms: u64) -> Result<RunView, Problem> {
        if wait_ms == 0 {
            return Ok(self.engine.view(run).await?);
        }
        let wait = Duration::from_millis(wait_ms).min(self.config.wait_max);
        tokio::select! {
            biased;
            ended = tokio::time::timeout(wait, self.engine.ended_view(run)) => {
                if let Ok(ended) = ended {
                    return Ok(ended?);
                }
            }
            () = self.closing.cancelled() => {}
        }
        Ok(self.engine.view(run).await?)
    }
}
