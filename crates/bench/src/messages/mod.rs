//! Messages between processes: what each part of their way costs.

mod calls;
mod echo;
mod inbox;
mod unary;
mod worker;

use crate::report::Report;
use anyhow::Result;

/// What there is to measure.
pub(crate) const SCENARIOS: [&str; 7] = ["inbox", "echo", "call-http2", "unary-grpc", "loss-1", "loss-3", "remote-worker"];

/// Why the same is not measured over QUIC.
pub(crate) const NO_QUIC: &str =
    "there is no QUIC yet: messages go over HTTP/2, which call-http2 measures, and QUIC is to follow behind the same trait, Wire";

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
    if only == Some("unary-grpc") {
        calls::unary(report, quick).await?; // else it is measured beside call-http2
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
