//! Keys that expire soon: put, renewed, deleted and put again under few names, by one process after the other.
//!
//! What is asked of a key is said before and after it, so that the test knows what may have come of it: `asks AT KEY put TTL VALUE`, `asks AT KEY renew TTL`, `asks AT KEY delete`,
//! then `did AT KEY REVISION`, with EXPIRES of what is still there, or `refused AT KEY`. Dead letters are redriven or dropped: `dropping KEY REVISION`, then `dropped KEY REVISION`; likewise `redriving`, `redriven`.
#![allow(clippy::print_stdout, reason = "what is acknowledged is said on standard output")]

pub mod calls;
mod plans;

use crate::{log, operator};
use anyhow::{Context, Result};
use std::time::Duration;
use steadfast::{Callbacks, Clock, Config, Ctx, Engine, EngineBuilder, Expired, Failure, LetterRow, Policy, Store, SystemClock, workflow};
use steadfast_kernel::LetterAbout;
use steadfast_store_embedded::Embedded;

const MS: Duration = Duration::from_millis(1);

/// Fails for good until somebody has looked at it.
pub const BAD: &str = "bad/";
/// Fails for good, and is dropped.
pub const HOPELESS: &str = "hopeless/";
/// Starts a run.
pub const RUN: &str = "run/";
/// Nobody is told.
pub const QUIET: &str = "quiet/";
/// Has keys below it.
pub const DIRECTORY: &str = "dir/";
/// Fails at first.
const FLAKY: &str = "flaky/";
/// Hangs at first.
const SLOW: &str = "slow/";
/// Nothing special.
const PLAIN: &str = "plain/";
/// Is renewed all the time.
const HOT: &str = "hot/";

/// Puts keys and sees to their dead letters, until nothing of them is left to be told.
///
/// # Errors
/// If something is refused that must not be, or the other way round.
pub async fn live(data: &str, process: u32) -> Result<()> {
    let store = Embedded::open(data)?;
    let callbacks = Callbacks { policy: Policy::constant(8 * MS).max_attempts(12), attempt_timeout: 60 * MS, in_flight_max: 3 };
    let config = Config { snapshot_every: 5, expire_batch: 4, retry_batch: 2, callbacks, keys_kept_for: 60 * MS, ..Config::default() };
    let engine = handlers(Engine::on(store.clone()).config(config)).register(noted).start().await?;
    tokio::select! {
        biased;
        () = operator::pulse(&engine) => {}
        failed = see_to_letters(&engine) => failed?,
        done = see_to_all(&engine, &store, process) => done?,
    }
    engine.shutdown().await;
    println!("done");
    Ok(())
}

async fn see_to_all(engine: &Engine, store: &Embedded, process: u32) -> Result<()> {
    plans::carry_out(engine, process).await?;
    while !is_quiet(engine, store).await? {
        wait(3 * MS).await;
    }
    Ok(())
}

/// No key is there, no end is to be told, and nobody has a letter to see to.
async fn is_quiet(engine: &Engine, store: &Embedded) -> Result<bool> {
    let rows = store.keys_below("", None, 1).await?;
    Ok(rows.is_empty() && engine.callbacks("", None, 1).await?.items.is_empty() && engine.letters(None, 1).await?.items.is_empty())
}

async fn wait(time: Duration) {
    SystemClock.sleep(time).await;
}

fn handlers(engine: EngineBuilder) -> EngineBuilder {
    [PLAIN, HOT, DIRECTORY, FLAKY, SLOW, BAD, HOPELESS]
        .into_iter()
        .fold(engine, |engine, prefix| engine.on_expire(prefix, move |expired| told(prefix, expired)))
}

/// Is told of an expiry, and behaves as its prefix says.
async fn told(prefix: &'static str, expired: Expired) -> Result<(), Failure> {
    let value: String = expired.value()?;
    calls::note(&expired, &value, false)?;
    wait(MS).await;
    match prefix {
        FLAKY if expired.attempt < 3 => return Err(Failure::transient("not yet")),
        SLOW if expired.attempt == 1 => std::future::pending().await,
        BAD if !log::is_repaired(&expired.idempotency_key()) => return Err(Failure::permanent("broken")),
        HOPELESS => return Err(Failure::permanent("nonsense")),
        _ => {}
    }
    Ok(calls::note(&expired, &value, true)?)
}

/// Started by an expiry.
#[workflow]
async fn noted(ctx: Ctx, value: String) -> Result<String, Failure> {
    ctx.step("note", || async { log::note(&ctx, "note").map_err(Failure::from) }).await?;
    Ok(value)
}

async fn see_to_letters(engine: &Engine) -> Result<()> {
    loop {
        for letter in engine.letters(None, 1000).await?.items {
            see_to_letter(engine, &letter).await.with_context(|| format!("the letter about {}", letter.about))?;
        }
        wait(3 * MS).await;
    }
}

async fn see_to_letter(engine: &Engine, letter: &LetterRow) -> Result<()> {
    let LetterAbout::Expiry { key, revision } = &letter.about else { anyhow::bail!("only keys leave letters here") };
    let id = letter.letter.to_string();
    if key.as_str().starts_with(HOPELESS) {
        println!("dropping {key} {revision}");
        engine.drop_letter(&id).by("the operator").why("nonsense").await?;
        println!("dropped {key} {revision}");
    } else {
        log::repair(&format!("{key}/{revision}"))?;
        println!("redriving {key} {revision}");
        engine.redrive(&id).by("the operator").why("it is repaired").await?;
        println!("redriven {key} {revision}");
    }
    Ok(())
}
