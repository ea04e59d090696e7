//! The victim: starts the runs, sees to them, says what was acknowledged, and is killed at any moment.
//!
//! Usage: `steadfast-crash-test DATA LOG PROCESS RUNS`, or in the place of RUNS `removed` for runs that are removed after their end, `keys` for keys that expire, `plans` for plans, `messages:PORT` to answer calls there, `depot:PORT:RUNS` to have runs hosted by workers, or `worker:PORT:NAME` to be one. It says how many commits it has made (`at COMMITS`), a line per acknowledgement
//! (`started RUN`, `signalled RUN`, `did RUN COMMAND`, `redriven RUN`, `dropped RUN`, `ended RUN`), and `done` at the end.
#![allow(clippy::print_stdout, reason = "what is acknowledged is said on standard output")]

use anyhow::Result;
use std::ops::Range;
use std::time::Duration;
use steadfast::{Config, Engine};
use steadfast_crash_test::{keys, log, messages, operator, plans, removed, shapes, workers};
use steadfast_store_embedded::Embedded;
use tokio::task::JoinSet;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data, log, process, runs] = &arguments[..] else { anyhow::bail!("usage: steadfast-crash-test DATA LOG PROCESS RUNS") };
    let process = process.parse()?;
    log::init(log.into(), process);
    match runs.as_str() {
        "removed" => return removed::live(data, process).await,
        "keys" => return keys::live(data, process).await,
        "plans" => return plans::live(data, process).await,
        messages if messages.starts_with("messages:") => return messages::live(data, &messages["messages:".len()..]).await,
        depot if depot.starts_with("depot:") => return workers::serve(data, &depot["depot:".len()..]).await,
        worker if worker.starts_with("worker:") => return workers::work(&worker["worker:".len()..]).await,
        _ => {}
    }
    let store = Embedded::open(data)?;
    let config = Config { heartbeat_every: Duration::from_millis(5), snapshot_every: 5, ..Config::default() };
    let engine = shapes::register(Engine::on(store.clone()).config(config)).start().await?;
    let runs = 0..runs.parse()?;
    tokio::select! {
        biased;
        () = operator::pulse(&engine) => {}
        failed = operator::see_to_letters(&engine) => failed?,
        done = see_to_all(&engine, &store, runs, process) => done?,
    }
    engine.shutdown().await;
    println!("done");
    Ok(())
}

async fn see_to_all(engine: &Engine, store: &Embedded, runs: Range<u32>, process: u32) -> Result<()> {
    let mut under_way: JoinSet<Result<()>> = runs.map(|n| operator::see_to(engine.clone(), n, process)).collect();
    while let Some(run) = under_way.join_next().await {
        run??;
    }
    operator::quiet(engine, store).await
}
