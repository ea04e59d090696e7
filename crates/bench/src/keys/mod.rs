//! Keys on the embedded store: how quickly they expire, how late, and what they take.

mod expire;
mod idle;
mod lateness;
mod memory;
mod sick;

use crate::report::Report;
use anyhow::{Context, Result};
use futures_util::StreamExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steadfast::{Clock, SystemClock, Timestamp};
use steadfast_kernel::{KeyName, Payload, Target};
use steadfast_runtime::{Builder, Engine, Put};
use steadfast_store_embedded::Embedded;

/// What there is to measure.
pub(crate) const SCENARIOS: [&str; 5] = ["expire", "expire-lateness", "memory", "sick-target", "idle-cpu"];

/// How many puts are under way at once when keys are made.
const CLIENTS: usize = 1000;

pub(crate) async fn run(report: &Report, only: Option<&str>, quick: bool) -> Result<()> {
    let wanted = |scenario: &str| only.is_none_or(|only| only == scenario);
    let folder = tempfile::tempdir_in(".").context("the data folder belongs on a real disk, so it is made in this one")?;
    if wanted("expire") {
        expire::measure(report, &folder.path().join("expire"), if quick { 50_000 } else { 1_000_000 }).await?;
    }
    if wanted("expire-lateness") {
        lateness::measure(report, &folder.path().join("lateness"), if quick { 4 } else { 20 }).await?;
    }
    if wanted("memory") {
        memory::measure(report, &folder.path().join("memory"), if quick { 50_000 } else { 1_000_000 }).await?;
    }
    if wanted("sick-target") {
        sick::measure(report, &folder.path().join("sick"), if quick { 4 } else { 60 }).await?;
    }
    if wanted("idle-cpu") {
        idle::measure(report, &folder.path().join("idle"), if quick { 50_000 } else { 1_000_000 }, if quick { 3 } else { 20 }).await?;
    }
    Ok(())
}

/// An engine on a store in that folder.
fn builder(folder: &Path) -> Result<Builder> {
    Ok(Builder::new(Arc::new(Embedded::open(folder)?)))
}

/// The name of the nth key.
fn name(number: u64) -> Result<KeyName> {
    Ok(KeyName::new(format!("session:{number:012x}"))?)
}

/// A key with a small value that ends at that time.
async fn put(engine: &Engine, number: u64, ends_at: Timestamp, on_expire: Option<Target>) -> Result<()> {
    let ttl = ends_at.saturating_since(SystemClock.now());
    let put = Put { value: Payload::json("{\"user\":17}"), ttl, owner: None, directory: false, on_expire, if_revision: None };
    engine.put_key(&name(number)?, put).await?;
    Ok(())
}

/// Many keys, put side by side; `ends_at` says when each of them ends.
async fn put_all(engine: &Engine, count: u64, ends_at: impl Fn(u64) -> Timestamp) -> Result<()> {
    let puts = futures_util::stream::iter((0..count).map(|number| put(engine, number, ends_at(number), None)));
    let mut puts = puts.buffer_unordered(CLIENTS);
    while let Some(outcome) = puts.next().await {
        outcome?;
    }
    Ok(())
}

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        SystemClock.sleep(Duration::from_millis(2)).await;
    }
}
