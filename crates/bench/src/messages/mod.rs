//! Messages between processes: what each part of their way costs.

mod calls;
mod echo;
mod inbox;
mod unary;
mod worker;

use crate::report::Report;
use anyhow::Result;

/// What there is to measure.
pub(crate) const SCENARIOS: [&str; 6] = ["inbox", "echo", "call-http2", "loss-1", "loss-3", "remote-worker"];

pub(crate) async fn run(report: &Report, only: Option<&str>, quick: bool) -> Result<()> {
    let wanted = |scenario: &str| only.is_none_or(|only| only == scenario);
    if wanted("inbox") {
        inbox::measure(report, quick).await?;
    }
    if wanted("echo") {
        echo::measure(report, quick).await?;
    }
    if wanted("call-http2") {
        calls::measure(report, quick).await?;
    }
    for (scenario, percent) in [("loss-1", 1), ("loss-3", 3)] {
        if wanted(scenario) {
            calls::lossy(report, scenario, percent, quick).await?;
        }
    }
    if wanted("remote-worker") {
        worker::measure(report, quick).await?;
    }
    Ok(())
}
