//! What is asked of runs by somebody outside. All of it may be asked again in the next life of the process, whatever became of it in this one.
#![allow(clippy::print_stdout, reason = "what is acknowledged is said on standard output")]

use crate::log;
use crate::shapes::{self, Asks, EDITED_BY, Retry, SUPPLIED, Shape};
use anyhow::{Context, Result, ensure};
use std::time::Duration;
use steadfast::{Clock, Engine, Error, LetterRow, Run, Status, Store, SystemClock};

/// How long to wait before looking again.
const A_WHILE: Duration = Duration::from_millis(3);

async fn wait(time: Duration) {
    SystemClock.sleep(time).await;
}

/// Says how many commits were made, so that somebody outside can choose a moment.
pub async fn pulse(engine: &Engine) {
    let mut said = 0;
    loop {
        wait(A_WHILE / 3).await;
        if engine.commits() > said {
            said = engine.commits();
            println!("at {said}");
        }
    }
}

/// Starts the run of that number, sees to it until it has ended, and says what was acknowledged. Now and then it asks for nonsense, too.
///
/// # Errors
/// If something is refused that must not be, or the other way round.
pub async fn see_to(engine: Engine, n: u32, process: u32) -> Result<()> {
    let (shape, id) = (shapes::of(n), shapes::id(n));
    let run = start(&engine, shape, &id, n).await.with_context(|| format!("starting {id}"))?;
    println!("started {id}");
    if (n + process).is_multiple_of(8) {
        nonsense(&engine, &run, shape, n).await?;
    }
    let children = shape.children.iter().map(|(suffix, _)| engine.run(&format!("{id}{suffix}")));
    let children = children.collect::<Result<Vec<_>, _>>()?;
    if matches!(shape.asks, Asks::Cancel | Asks::Terminate) {
        begun(&children).await?; // or there would be none
    }
    ask(&run, shape.asks, n).await.with_context(|| format!("asking of {id}"))?;
    begun(&children).await?;
    for run in children.iter().chain([&run]) {
        completes(run).await?;
    }
    println!("ended {id}");
    Ok(())
}

async fn start(engine: &Engine, shape: &Shape, id: &str, n: u32) -> Result<Run, Error> {
    let mut start = engine.start(shape.workflow, &n).id(id);
    if let Some(deadline) = shape.deadline {
        start = start.deadline(deadline);
    }
    if let Some((key, slots)) = shape.limit {
        start = start.limit(key, slots);
    }
    start.await
}

/// What has to be refused, whenever it is asked.
async fn nonsense(engine: &Engine, run: &Run, shape: &Shape, n: u32) -> Result<()> {
    let other = engine.start(shape.workflow, &(n + 1)).id(shapes::id(n)).await;
    ensure!(other.is_err_and(|error| error.code() == "SF0103"), "the id is taken");
    let unknown = engine.start("nobody", &n).id(format!("refused-{n}")).await;
    ensure!(unknown.is_err_and(|error| error.code() == "SF0102"), "there is no such workflow");
    let nowhere = run.retry().from_step("nowhere").id("refused").await;
    ensure!(nowhere.is_err_and(|error| ["SF0113", "SF0114"].contains(&error.code())), "there is no such step");
    let letter = engine.drop_letter("nobody.1").why("refused").await;
    ensure!(letter.is_err_and(|error| error.code() == "SF0115"), "there is no such letter");
    Ok(())
}

async fn ask(run: &Run, asks: Asks, n: u32) -> Result<()> {
    match asks {
        Asks::Nothing | Asks::Drop => {}
        Asks::Signal => signal(run, n).await?,
        Asks::Retry(which) => retry(run, which, n).await?,
        Asks::Pause => pause(run, n).await?,
        Asks::Terminate => {
            wait(A_WHILE * (n % 9)).await;
            did(run, "terminate", run.terminate().id("terminate").await)?;
        }
        Asks::Cancel => {
            wait(A_WHILE * (n % 9)).await;
            did(run, "cancel", run.cancel().id("cancel").await)?;
        }
        Asks::Redrive => {
            while !completes(run).await? {
                wait(A_WHILE).await; // the letters are seen to by themselves
            }
        }
        Asks::RetryInterrupted => retry_interrupted(run).await?,
    }
    Ok(())
}

/// Waits for the end of a run. True if it has completed.
async fn completes(run: &Run) -> Result<bool> {
    match run.result::<serde_json::Value>().await {
        Err(error) if error.failure().is_none() => Err(error.into()),
        result => Ok(result.is_ok()),
    }
}

/// Says that a command is on record.
fn did(run: &Run, command: &str, answer: Result<(), Error>) -> Result<()> {
    answer.with_context(|| format!("{command} of {}", run.id()))?;
    println!("did {} {command}", run.id());
    Ok(())
}

async fn signal(run: &Run, n: u32) -> Result<()> {
    match run.signal("go", &n).id("go").await {
        Ok(_) => println!("signalled {}", run.id()),
        Err(error) if error.code() == "SF0105" => {} // it has ended in an earlier life
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

async fn retry(run: &Run, which: Retry, n: u32) -> Result<()> {
    completes(run).await?; // in its first life it fails
    if which != Retry::Output {
        log::repair(run.id().as_str())?;
    }
    let retry = run.retry().by("the operator").id("again");
    let retry = match which {
        Retry::Failed => retry,
        Retry::Step(step) => retry.from_step(step),
        Retry::Input => retry.input(&(n + EDITED_BY)),
        Retry::Output => retry.output("fly", &SUPPLIED),
    };
    did(run, "again", retry.await)
}

async fn pause(run: &Run, n: u32) -> Result<()> {
    wait(A_WHILE * (n % 20)).await;
    match run.pause().id("pause").await {
        Err(error) if error.code() == "SF0105" => return Ok(()), // it was quicker
        answer => did(run, "pause", answer)?,
    }
    wait(A_WHILE * (3 + n % 7)).await;
    match run.resume().id("resume").await {
        Err(error) if error.code() == "SF0105" => {}
        answer => did(run, "resume", answer)?,
    }
    Ok(())
}

async fn retry_interrupted(run: &Run) -> Result<()> {
    loop {
        let view = run.view().await?;
        match view.status {
            Status::Interrupted => {
                let command = format!("again-{}", view.epoch);
                did(run, &command, run.retry().id(&command).await)?;
            }
            status if status.is_final() => return Ok(()),
            _ => wait(A_WHILE).await,
        }
    }
}

/// Waits until these runs are there.
async fn begun(runs: &[Run]) -> Result<()> {
    for run in runs {
        while let Err(error) = run.view().await {
            ensure!(error.code() == "SF0104", "looking at {}: {error}", run.id());
            wait(A_WHILE).await;
        }
    }
    Ok(())
}

/// Sees to the dead letters, until somebody ends it.
///
/// # Errors
/// If a letter can be neither redriven nor dropped.
pub async fn see_to_letters(engine: &Engine) -> Result<()> {
    loop {
        for letter in engine.letters(None, 1000).await?.items {
            see_to_letter(engine, &letter).await.with_context(|| format!("the letter about {}", letter.about))?;
        }
        wait(A_WHILE).await;
    }
}

async fn see_to_letter(engine: &Engine, letter: &LetterRow) -> Result<()> {
    let run = letter.about.run().context("only steps leave letters here")?;
    let (id, run) = (letter.letter.to_string(), engine.run(run.as_str())?);
    if run.id().as_str().starts_with("dropped") {
        engine.drop_letter(&id).by("the operator").why("nonsense").await?;
        println!("dropped {}", run.id());
    } else if run.view().await?.status == Status::Failed {
        log::repair(run.id().as_str())?;
        engine.redrive(&id).by("the operator").why("the parser is repaired").await?;
        println!("redriven {}", run.id());
    } // else it was redriven, and the box has not heard of it yet
    Ok(())
}

/// Waits until everything that runs have told others is heard, and nobody has a letter to see to.
///
/// # Errors
/// If the store cannot be read.
pub async fn quiet(engine: &Engine, store: &impl Store) -> Result<()> {
    while !store.outbox(0, None, 1).await.map_err(Error::from)?.is_empty() || !engine.letters(None, 1).await?.items.is_empty() {
        wait(A_WHILE).await;
    }
    Ok(())
}
