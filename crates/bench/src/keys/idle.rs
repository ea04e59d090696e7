//! What an engine with keys that end tomorrow uses of a core while nobody asks for anything.

use super::{builder, put_all};
use crate::cpu;
use crate::report::{Measured, Report};
use anyhow::Result;
use std::path::Path;
use std::time::Duration;
use steadfast::{Clock, SystemClock};

pub(super) async fn measure(report: &Report, folder: &Path, count: u64, seconds: u64) -> Result<()> {
    let engine = builder(folder)?.start().await?;
    let tomorrow = SystemClock.now().saturating_add(Duration::from_secs(24 * 60 * 60));
    put_all(&engine, count, |number| tomorrow.saturating_add(Duration::from_millis(number))).await?;
    SystemClock.sleep(Duration::from_secs(2)).await; // what is under way comes to rest
    let (used, begun) = (cpu::used(), SystemClock.now());
    SystemClock.sleep(Duration::from_secs(seconds)).await;
    let (used, took) = (cpu::used().saturating_sub(used), SystemClock.now().saturating_since(begun));
    engine.shutdown().await;
    let percent = used.as_secs_f64() / took.as_secs_f64() * 100.0;
    report.say(&Measured::value("idle-cpu", percent, format!("% of a core, with {count} keys")))
}
