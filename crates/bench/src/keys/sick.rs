//! A target that does not answer beside one that does: how late the well one is told, without and with the sick one.

use super::{builder, put, until};
use crate::report::{Measured, Report};
use anyhow::{Result, anyhow, ensure};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::{Clock, Failure, SystemClock};
use steadfast_kernel::Target;
use steadfast_runtime::{Call, Caller};

/// How many keys of each target are due in a second.
const PER_S: u64 = 500;

pub(super) async fn measure(report: &Report, folder: &Path, seconds: u64) -> Result<()> {
    let alone = lateness(&folder.join("alone"), seconds, false).await?;
    let beside = lateness(&folder.join("beside"), seconds, true).await?;
    let say = |late, what: &str| report.say(&Measured::value("sick-target", PER_S as f64, what).percentiles(late));
    say(alone, "due per second; how late a well target was told")?;
    say(beside, "the same beside a target that is down")
}

async fn lateness(folder: &Path, seconds: u64, with_sick: bool) -> Result<Vec<Duration>> {
    let targets = Arc::new(Targets::default());
    let mut builder = builder(folder)?;
    builder.caller = Some(targets.clone());
    let engine = builder.start().await?;
    let (count, first) = (PER_S * seconds, SystemClock.now().saturating_add(Duration::from_secs(3 + seconds / 4)));
    let engine = &engine;
    let puts = (0..count).flat_map(|number| {
        let ends_at = first.saturating_add(Duration::from_micros(number * 1_000_000 / PER_S));
        let of = |url: &str, number| put(engine, number, ends_at, Some(Target::Url(url.into())));
        [Some(of(WELL, 2 * number)), with_sick.then(|| of(SICK, 2 * number + 1))].into_iter().flatten()
    });
    let mut puts = futures_util::stream::iter(puts).buffer_unordered(200);
    while let Some(outcome) = puts.next().await {
        outcome?;
    }
    drop(puts);
    ensure!(SystemClock.now() < first, "it took too long to put {count} keys");
    until(|| targets.late.lock().is_ok_and(|late| late.len() as u64 == count)).await;
    ensure!(!with_sick || targets.refused.load(Ordering::Relaxed) > 0, "the sick target was never called");
    engine.clone().shutdown().await;
    let late = std::mem::take(&mut *targets.late.lock().map_err(|_| anyhow!("a call panicked"))?);
    Ok(late)
}

const WELL: &str = "http://well/";
const SICK: &str = "http://sick/";

/// One that answers at once, and one of which every other call finds nobody and the others never get an answer.
#[derive(Default)]
struct Targets {
    late: Mutex<Vec<Duration>>,
    refused: AtomicU64,
}

impl Caller for Targets {
    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn target(&self, url: &str) -> String {
        url.into()
    }

    fn call(&self, url: &str, call: Call) -> BoxFuture<'static, Result<(), Failure>> {
        if url == WELL {
            if let Ok(mut late) = self.late.lock() {
                late.push(SystemClock.now().saturating_since(call.expired_at));
            }
            return std::future::ready(Ok(())).boxed();
        }
        match self.refused.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => std::future::ready(Err(Failure::transient("connection refused"))).boxed(),
            _ => std::future::pending().boxed(),
        }
    }
}
