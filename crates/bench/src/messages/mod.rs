//! Messages between processes: what each part of their way costs.

mod echo;
mod inbox;
mod unary;

use crate::report::Report;
use anyhow::Result;

/// What there is to measure.
pub(crate) const SCENARIOS: [&str; 2] = ["inbox", "echo"];

pub(crate) async fn run(report: &Report, only: Option<&str>, quick: bool) -> Result<()> {
    let wanted = |scenario: &str| only.is_none_or(|only| only == scenario);
    if wanted("inbox") {
        inbox::measure(report, quick).await?;
    }
    if wanted("echo") {
        echo::measure(report, quick).await?;
    }
    Ok(())
}
