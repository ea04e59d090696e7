//! What the tests share: an engine in virtual time, journals as lines of text, and a memory of calls that outlives an engine.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::testing::Journal;
use steadfast::{Ctx, Engine, EngineBuilder, Run, VirtualClock};

/// An engine on that store in virtual time: delays pass as soon as nothing else is to be done.
pub(crate) fn engine(store: &Memory) -> EngineBuilder {
    Engine::on(store.clone()).clock(VirtualClock::start())
}

/// The journal as lines: type, subject, attempt, failure.
pub(crate) async fn lines(run: &Run) -> Vec<String> {
    Journal::of(run).await.lines()
}

static CALLS: LazyLock<Mutex<BTreeMap<String, u32>>> = LazyLock::new(Mutex::default);

/// Notes a call of a step and tells which it is, from 1. Runs of different tests must have different ids.
pub(crate) fn call(ctx: &Ctx, step: &str) -> u32 {
    note(ctx.run_id().as_str(), step)
}

/// The same, for code that has no context.
pub(crate) fn note(run: &str, step: &str) -> u32 {
    let mut calls = CALLS.lock().expect("not poisoned");
    let count = calls.entry(format!("{run}/{step}")).or_default();
    *count += 1;
    *count
}

/// How often a step was called, over all engines.
pub(crate) fn calls(run: &str, step: &str) -> u32 {
    CALLS.lock().expect("not poisoned").get(&format!("{run}/{step}")).copied().unwrap_or_default()
}

/// Waits for a fact, in virtual time, with a bound.
pub(crate) async fn until(what: &str, mut fact: impl AsyncFnMut() -> bool) {
    for _ in 0..10_000 {
        if fact().await {
            return;
        }
        tokio::time::advance(Duration::from_micros(100)).await;
        tokio::task::yield_now().await;
    }
    panic!("it never came to this: {what}");
}
