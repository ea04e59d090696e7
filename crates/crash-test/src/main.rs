//! The victim: starts the runs, says what was acknowledged, and is killed at any moment.
//!
//! Usage: `steadfast-crash-test DATA LOG PROCESS RUNS`. A line per acknowledgement: `started ID`, `signalled ID`, `ended ID`, and `done` at the end.
#![allow(clippy::print_stdout, reason = "what is acknowledged is said on standard output")]

use anyhow::{Context, Result};
use steadfast::{Engine, Error};
use steadfast_crash_test::{log, shapes};

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data, log, process, runs] = &arguments[..] else { anyhow::bail!("usage: steadfast-crash-test DATA LOG PROCESS RUNS") };
    log::init(log.into(), process.parse()?);
    let engine = shapes::register(Engine::open(data)?).start().await?;
    let runs: Vec<_> = (0..runs.parse()?).map(|n| tokio::spawn(one(engine.clone(), n))).collect();
    for run in runs {
        run.await??;
    }
    engine.shutdown().await;
    println!("done");
    Ok(())
}

async fn one(engine: Engine, n: u32) -> Result<()> {
    let shape = &shapes::ALL[n as usize % shapes::ALL.len()];
    let id = format!("{}-{n}", shape.workflow);
    let mut start = engine.start(shape.workflow, &n).id(&id);
    if let Some(deadline) = shape.deadline {
        start = start.deadline(deadline);
    }
    let run = start.await.with_context(|| format!("starting {id}"))?;
    println!("started {id}");
    if shape.workflow == shapes::SIGNALLED {
        match run.signal("go", &n).id("go").await {
            Ok(_) => println!("signalled {id}"),
            Err(error) if error.code() == "SF0105" => {} // it has ended in an earlier life
            Err(error) => return Err(error.into()),
        }
    }
    match run.result::<serde_json::Value>().await {
        Ok(_) | Err(Error::Failed { .. }) => println!("ended {id}"),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
