//! Runs that are removed right after their end, by a process that looks for them all the time: that is the moment at which it is killed.
#![allow(clippy::print_stdout, reason = "what is acknowledged is said on standard output")]

use crate::log;
use anyhow::Result;
use futures_util::future::{BoxFuture, try_join_all};
use std::time::Duration;
use steadfast::{Clock, Config, Ctx, Engine, Failure, Retention, Store, SystemClock, Timestamp, workflow};
use steadfast_store_embedded::Embedded;

const MS: Duration = Duration::from_millis(1);

/// How many runs of its own every process starts.
pub const BRIEF: u32 = 24;

/// How many ids are used again and again.
pub const AGAIN: u32 = 3;

/// One run in so many has a journal that takes several steps to be removed.
const LONG_EVERY: u32 = 6;

/// The clock of the machine, but who would sleep for long is woken soon: it looks for runs whose time is over all the time.
struct Hasty;

impl Clock for Hasty {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        SystemClock.sleep(if time > Duration::from_secs(10) { 4 * MS } else { time })
    }
}

#[workflow]
async fn brief(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let steps = if n.is_multiple_of(LONG_EVERY) { 400 } else { 1 + n % 4 };
    ctx.all((0..steps).map(|_| ctx.step("part", || async { Ok::<_, Failure>(()) }))).await;
    ctx.step("last", || async { log::note(&ctx, "last").map_err(Failure::from) }).await?;
    Ok(n)
}

#[workflow]
async fn fails(_ctx: Ctx, _n: u32) -> Result<(), Failure> {
    Err(Failure::permanent("as it must"))
}

#[workflow]
async fn stays(ctx: Ctx, _n: u32) -> Result<(), Failure> {
    ctx.signal::<()>("never").await
}

/// Starts runs of its own and some that have been there before, and waits until those that complete have done so and are gone.
///
/// # Errors
/// If something is refused.
pub async fn live(data: &str, process: u32) -> Result<()> {
    let store = Embedded::open(data)?;
    let config = Config { snapshot_every: 5, retention: Retention::new().completed(MS), ..Config::default() };
    let engine = Engine::on(store.clone()).clock(Hasty).config(config);
    let engine = engine.register(brief).register(fails).register(stays).start().await?;
    for workflow in ["fails", "stays"] {
        let id = format!("{workflow}-{process}");
        engine.start(workflow, &process).id(&id).await?;
        println!("started {id}");
    }
    let mine = (0..BRIEF).map(|n| once(&engine, n, format!("brief-{process}-{n}")));
    let shared = (0..AGAIN).map(|n| again(&engine, n, format!("again-{n}")));
    tokio::try_join!(try_join_all(mine), try_join_all(shared))?;
    while !engine.list().workflow("brief").await?.items.is_empty() || !store.half_swept(0).await.map_err(anyhow::Error::from)?.is_empty() {
        Hasty.sleep(MS).await;
    }
    engine.shutdown().await;
    println!("done");
    Ok(())
}

async fn once(engine: &Engine, n: u32, id: String) -> Result<()> {
    engine.start("brief", &n).id(&id).await?;
    println!("started {id}");
    Ok(())
}

/// The id is used again as soon as it is free; a run that is there is found.
async fn again(engine: &Engine, n: u32, id: String) -> Result<()> {
    let mut begun = 0;
    while begun < 5 {
        let run = engine.start("brief", &(n * LONG_EVERY)).id(&id).await?;
        begun += u32::from(run.is_new());
        Hasty.sleep(MS).await;
    }
    Ok(())
}
