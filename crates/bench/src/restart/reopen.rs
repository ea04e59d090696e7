//! The process that opens what another one has left.

use super::{BUILDING, Opened, backing_off, signalled, sleeping, working};
use crate::memory;
use anyhow::Result;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;
use steadfast::{Clock, Ctx, Engine, Failure, Status, SystemClock, Timestamp, workflow};
use tokio::sync::Semaphore;

/// When the first work began.
static FIRST: OnceLock<Timestamp> = OnceLock::new();
/// A permit for each that is done.
static DONE: Semaphore = Semaphore::const_new(0);

/// What the step of `working` does: nothing that ends in the process that builds, nothing that takes long in this one.
pub(super) async fn work() -> Result<(), Failure> {
    if BUILDING.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    FIRST.get_or_init(|| SystemClock.now());
    DONE.add_permits(1);
    Ok(())
}

#[workflow]
async fn fresh(ctx: Ctx, (): ()) -> Result<(), Failure> {
    ctx.step("fresh", || async { Ok::<_, Failure>(()) }).await
}

pub(super) async fn open(folder: &Path, due: u32, started_us: i64) -> Result<()> {
    let started = Timestamp::from_micros(started_us);
    let ms = |at: Timestamp| at.saturating_since(started).as_secs_f64() * 1e3;
    let builder = Engine::open(folder)?.register(sleeping).register(signalled).register(backing_off);
    let engine = builder.register(working).register(fresh).start().await?;
    let open_ms = ms(SystemClock.now());
    engine.start("fresh", &()).await?.result::<()>().await?;
    let served_ms = ms(SystemClock.now());
    let _all = DONE.acquire_many(due).await?;
    while !engine.list().workflow("working").status(Status::Running).limit(1).await?.items.is_empty() {
        SystemClock.sleep(Duration::from_millis(1)).await;
    }
    let done_ms = (due > 0).then(|| ms(SystemClock.now()));
    let first_ms = FIRST.get().map(|first| ms(*first));
    let (rss_mib, rss_max_mib) = (memory::status_mib("VmRSS")?, memory::status_mib("VmHWM")?);
    println!("{}", serde_json::to_string(&Opened { open_ms, first_ms, done_ms, served_ms, rss_mib, rss_max_mib })?);
    engine.shutdown().await;
    Ok(())
}
