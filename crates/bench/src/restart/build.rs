//! A store with open runs of all kinds, made by an engine.

use super::{BUILDING, BUILT, backing_off, signalled, sleeping, working};
use anyhow::Result;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use steadfast::{Clock, Engine, Status, SystemClock};

/// Most only wait; one in ten is under way.
const KINDS: [&str; 10] =
    ["sleeping", "signalled", "backing_off", "sleeping", "signalled", "backing_off", "sleeping", "signalled", "sleeping", "working"];

/// How many of so many runs are under way when the process is killed.
pub(super) fn under_way(runs: usize) -> usize {
    runs / KINDS.len()
}

pub(super) async fn build(folder: &Path, runs: usize) -> Result<()> {
    BUILDING.store(true, Ordering::SeqCst);
    let builder = Engine::open(folder)?.register(sleeping).register(signalled).register(backing_off).register(working);
    let engine = builder.start().await?;
    let next = Arc::new(AtomicUsize::new(0));
    let client = |_| {
        let (engine, next) = (engine.clone(), Arc::clone(&next));
        tokio::spawn(async move {
            while let i = next.fetch_add(1, Ordering::Relaxed)
                && i < runs
            {
                engine.start(KINDS[i % KINDS.len()], &i).await?;
            }
            anyhow::Ok(())
        })
    };
    for client in (0..512).map(client).collect::<Vec<_>>() {
        client.await??;
    }
    for kind in ["sleeping", "signalled", "backing_off"] {
        while !engine.list().workflow(kind).status(Status::Running).limit(1).await?.items.is_empty() {
            SystemClock.sleep(Duration::from_millis(5)).await;
        }
    }
    println!("{BUILT}");
    std::future::pending().await // until it is killed
}
