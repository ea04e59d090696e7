//! A batch that is imported by children, two at a time, of which one is poison; an operator looks at it and mends it.
//!
//! `cargo run --example import` starts a run per file, limits how many are under way, finds the dead letter of the file that nobody can read, redrives it
//! with its step supplied by hand, and shows what the runs say. Stop it at any moment and run it again: it goes on from what is on record.
#![allow(clippy::print_stdout, reason = "an example talks to the one who runs it")]
#![allow(clippy::disallowed_methods, reason = "a step may sleep as it likes")]

use std::time::Duration;
use steadfast::{Ctx, Engine, Error, Failure, Settings, Status, workflow};

/// Imports all files, each by a run of its own.
#[workflow]
async fn batch(ctx: Ctx, files: Vec<String>) -> Result<u64, Failure> {
    let mut imports = Vec::new();
    for file in &files {
        imports.push(ctx.start("import", file).tenant("acme").await?);
    }
    let mut rows = 0;
    for (index, child) in imports.into_iter().enumerate() {
        rows += child.result::<u64>().await.unwrap_or_default(); // what could not be read is for a person
        ctx.note(format!("{} of {} files", index + 1, files.len()));
    }
    Ok(rows)
}

/// Imports one file. A later attempt goes on where the one before it had come to.
#[workflow]
async fn import(ctx: Ctx, file: String) -> Result<u64, Failure> {
    let rows = ctx.step("read", || disk::read(&file)).await?;
    ctx.step("copy", || async {
        let heartbeat = ctx.heartbeat();
        for row in ctx.last_heartbeat::<u64>()?.unwrap_or_default()..rows {
            tokio::time::sleep(Duration::from_millis(5)).await; // copy the row
            heartbeat.beat(&(row + 1))?;
        }
        Ok::<_, Failure>(rows)
    })
    .heartbeat_timeout(Duration::from_secs(10))
    .await
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let engine = Engine::open("data")?
        .register(batch)
        .register_with(import, Settings::new().limit(2))
        .start()
        .await?;
    let files = ["may.csv", "june.csv", "july.zip", "august.csv"];
    let run = engine.start("batch", &files).id("summer").await?;
    let rows: u64 = run.result().await?;
    println!("{}: {rows} rows", engine.why("summer").await?);
    for letter in engine.letters(None, 10).await?.items {
        println!("dead letter {} of {}: {}", letter.letter, letter.about, letter.failure.message);
    }
    mend(&engine).await?;
    for row in engine.list().workflow("import").status(Status::Completed).await?.items {
        println!("{} is done", row.run);
    }
    engine.shutdown().await;
    Ok(())
}

/// Somebody has counted the rows of the file that nobody can read, and copies them.
async fn mend(engine: &Engine) -> Result<(), Error> {
    let broken = engine.run("summer/import.3")?;
    if broken.view().await?.status == Status::Failed {
        let plan = broken.retry().output("read", &31).preview().await?;
        println!("a retry of {} supplies {:?} and executes {:?} again", broken.id(), plan.supplied, plan.runs_again);
        broken.retry().output("read", &31).by("ada").why("counted by hand").id("mend-1").await?;
    }
    println!("{} rows by hand", broken.result::<u64>().await?);
    Ok(())
}

mod disk {
    use super::Failure;

    pub(crate) async fn read(file: &str) -> Result<u64, Failure> {
        if file.ends_with(".csv") { Ok(file.len() as u64) } else { Err(Failure::poison(format!("{file} is not a table"))) }
    }
}
