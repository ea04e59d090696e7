//! What a key takes in memory that ends in the next minutes; its value is in the store.

use super::{builder, put_all};
use crate::memory;
use crate::report::{Measured, Report};
use anyhow::Result;
use std::path::Path;
use std::time::Duration;
use steadfast::{Clock, SystemClock};

pub(super) async fn measure(report: &Report, folder: &Path, count: u64) -> Result<()> {
    let engine = builder(folder)?.start().await?;
    put_all(&engine, 2_000, |_| SystemClock.now().saturating_add(Duration::from_secs(590))).await?; // what the engine takes by itself
    let (bytes, outcome) = memory::count(async {
        let spread = |number: u64| Duration::from_micros(number * 7919 % 60_000_000);
        put_all(&engine, count, |number| SystemClock.now().saturating_add(Duration::from_secs(500) + spread(number))).await?;
        SystemClock.sleep(Duration::from_millis(500)).await; // what is under way comes to rest
        anyhow::Ok(())
    })
    .await;
    outcome?;
    engine.shutdown().await;
    report.say(&Measured::value("memory", bytes as f64 / count as f64, format!("bytes per key beyond its value, of {count}")))
}
