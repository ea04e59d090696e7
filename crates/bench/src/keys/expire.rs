//! Keys that are all due at the same moment: how many expire in a second, each with a callback to a handler of the process, durably.
//!
//! The limit is the same two commits of each, with the same group commit, into a plain file.

use super::{CLIENTS, builder, put_all, until};
use crate::limit::Disk;
use crate::report::{Measured, Report};
use anyhow::{Result, ensure};
use futures_util::{FutureExt, StreamExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use steadfast::{Clock, Entry, SystemClock};
use steadfast_kernel::{EntityId, KeyName};
use steadfast_runtime::{Engine, Handler};

/// How many puts in a second there are at least.
const PUTS_PER_S: u64 = 8_000;

pub(super) async fn measure(report: &Report, folder: &Path, count: u64) -> Result<()> {
    let told = Arc::new(AtomicU64::new(0));
    let builder = builder(folder)?;
    builder.handlers.insert("session:", counting(&told));
    let engine = builder.start().await?;
    let due = SystemClock.now().saturating_add(Duration::from_secs(2 + count / PUTS_PER_S));
    put_all(&engine, count, |_| due).await?;
    ensure!(SystemClock.now() < due, "it took too long to put {count} keys");
    until(|| told.load(Ordering::Relaxed) == count).await;
    while !engine.callbacks("", None, 1).await?.is_empty() {
        SystemClock.sleep(Duration::from_millis(1)).await;
    }
    let took = SystemClock.now().saturating_since(due);
    let journal = journal(&engine).await?;
    engine.shutdown().await;
    let limit = limit(folder, &journal, count.min(200_000)).await?;
    report.say(&Measured::rate("expire", count as f64 / took.as_secs_f64()).limit(limit))
}

fn counting(told: &Arc<AtomicU64>) -> Handler {
    let told = Arc::clone(told);
    Arc::new(move |_| {
        told.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok(())).boxed()
    })
}

/// What one of them wrote at its end.
async fn journal(engine: &Engine) -> Result<Vec<Entry>> {
    let entity = EntityId::Key(super::name(0)?);
    Ok(engine.entries(&entity, 1, 9).await?)
}

async fn limit(folder: &Path, journal: &[Entry], count: u64) -> Result<f64> {
    let disk = Disk::start(folder)?;
    let commits: Vec<Vec<Entry>> = journal.iter().map(|entry| vec![entry.clone()]).collect();
    let begun = SystemClock.now();
    let (disk, commits) = (&disk, &commits);
    let expiries = (0..count).map(|number| async move {
        let key = EntityId::Key(KeyName::new(format!("session:{number:012x}"))?);
        disk.play(&key, commits).await
    });
    let mut expiries = futures_util::stream::iter(expiries).buffer_unordered(CLIENTS);
    while let Some(outcome) = expiries.next().await {
        outcome?;
    }
    Ok(count as f64 / SystemClock.now().saturating_since(begun).as_secs_f64())
}
