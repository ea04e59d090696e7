//! Keys of which 5,000 are due in every second: how long after its time the end of each was on record, and its handler was called.

use super::{builder, put_all, until};
use crate::report::{Measured, Report};
use anyhow::{Result, anyhow, ensure};
use futures_util::FutureExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::{Clock, SystemClock};
use steadfast_runtime::Handler;

const PER_S: u64 = 5_000;

pub(super) async fn measure(report: &Report, folder: &Path, seconds: u64) -> Result<()> {
    let (late, count) = (Arc::new(Mutex::new(Vec::new())), PER_S * seconds);
    let builder = builder(folder)?;
    builder.handlers.insert("session:", noting(&late));
    let engine = builder.start().await?;
    let first = SystemClock.now().saturating_add(Duration::from_secs(2 + count / PER_S));
    put_all(&engine, count, |number| first.saturating_add(Duration::from_micros(number * 1_000_000 / PER_S))).await?;
    ensure!(SystemClock.now() < first, "it took too long to put {count} keys");
    until(|| late.lock().is_ok_and(|late| late.len() as u64 == count)).await;
    engine.shutdown().await;
    let late = std::mem::take(&mut *late.lock().map_err(|_| anyhow!("a handler panicked"))?);
    report.say(&Measured::value("expire-lateness", PER_S as f64, "due per second; how late they were told").percentiles(late))
}

fn noting(late: &Arc<Mutex<Vec<Duration>>>) -> Handler {
    let late = Arc::clone(late);
    Arc::new(move |expired| {
        if let Ok(mut late) = late.lock() {
            late.push(SystemClock.now().saturating_since(expired.expired_at));
        }
        std::future::ready(Ok(())).boxed()
    })
}
