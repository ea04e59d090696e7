//! The workflows that are killed, what is asked of their runs, and how each must end whatever happens to it.

mod families;
mod limited;
mod long;
mod operated;
mod plain;

pub use plain::FLAKY_MAX;

use crate::log;
use std::time::Duration;
use steadfast::{Ctx, EngineBuilder, Failure};

const MS: Duration = Duration::from_millis(1);

/// How a run must end: its result as JSON text, or the code of its failure.
pub type Expected = Result<String, &'static str>;

/// One of the shapes that runs have.
pub struct Shape {
    /// What its runs are named after.
    pub name: &'static str,
    /// The registered name of the workflow.
    pub workflow: &'static str,
    /// How a run with that input ends.
    pub expected: fn(u32) -> Expected,
    /// How long a run may take, if it has a deadline.
    pub deadline: Option<Duration>,
    /// The limit that it needs a slot of beside that of its workflow, and how many there are.
    pub limit: Option<(&'static str, u32)>,
    /// What is asked of its runs.
    pub asks: Asks,
    /// What its runs start, by what comes after their own id.
    pub children: &'static [Child],
}

/// A run that is started by a run: what its id ends with, and how it ends, given the input of its parent.
pub type Child = (&'static str, fn(u32) -> Expected);

/// What is asked of a run, until it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Nothing.
    Nothing,
    /// A signal `go` is sent.
    Signal,
    /// It fails, and has another life.
    Retry(Retry),
    /// It is paused for a while.
    Pause,
    /// It is terminated.
    Terminate,
    /// It is cancelled.
    Cancel,
    /// Its dead letter is redriven.
    Redrive,
    /// Its dead letter is dropped.
    Drop,
    /// It is retried whenever it is interrupted.
    RetryInterrupted,
}

/// Which other life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// From where it failed, once that is repaired.
    Failed,
    /// From a step before that, once it is repaired.
    Step(&'static str),
    /// With another input, once it is repaired.
    Input,
    /// With an output for the step that fails, which is never repaired.
    Output,
}

/// What is added to the input of a run that has another one in its second life.
pub const EDITED_BY: u32 = 100;

/// What a step is to have returned that is not executed.
pub const SUPPLIED: u32 = 1000;

impl Shape {
    const fn new(name: &'static str, workflow: &'static str, expected: fn(u32) -> Expected) -> Self {
        Shape { name, workflow, expected, deadline: None, limit: None, asks: Asks::Nothing, children: &[] }
    }

    const fn deadline(self, deadline: Duration) -> Self {
        Shape { deadline: Some(deadline), ..self }
    }

    const fn limit(self, key: &'static str, slots: u32) -> Self {
        Shape { limit: Some((key, slots)), ..self }
    }

    const fn asks(self, asks: Asks) -> Self {
        Shape { asks, ..self }
    }

    const fn children(self, children: &'static [Child]) -> Self {
        Shape { children, ..self }
    }
}

/// The shape of the run of that number.
pub fn of(n: u32) -> &'static Shape {
    let all: Vec<&Shape> = [plain::SHAPES, operated::SHAPES, families::SHAPES, limited::SHAPES, long::SHAPES]
        .into_iter()
        .flatten()
        .collect();
    all[n as usize % all.len()]
}

/// The id of the run of that number.
pub fn id(n: u32) -> String {
    format!("{}-{n}", of(n).name)
}

/// Registers every workflow.
pub fn register(engine: EngineBuilder) -> EngineBuilder {
    [plain::register, operated::register, families::register, limited::register, long::register]
        .into_iter()
        .fold(engine, |engine, register| register(engine))
}

/// A piece of work that leaves a line in the log and takes a moment.
async fn work<T>(ctx: &Ctx, step: &str, result: T) -> Result<T, Failure> {
    log::note(ctx, step)?;
    moment(MS).await;
    Ok(result)
}

#[expect(clippy::disallowed_methods, reason = "work takes time")]
async fn moment(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Fails until it was tried three times, over all processes.
async fn sometimes<T>(ctx: &Ctx, step: &str, result: T) -> Result<T, Failure> {
    let result = work(ctx, step, result).await?;
    if log::count(ctx, step) < 3 { Err(Failure::transient("not yet")) } else { Ok(result) }
}

/// Fails until it is repaired.
async fn repaired<T>(ctx: &Ctx, step: &str, failure: Failure, result: T) -> Result<T, Failure> {
    let result = work(ctx, step, result).await?;
    if log::is_repaired(ctx.run_id().as_str()) { Ok(result) } else { Err(failure) }
}

/// How something is undone: by a line in the log.
fn undo<T>(ctx: &Ctx, step: &str) -> impl Fn(T) -> std::future::Ready<Result<(), Failure>> + Send + Sync + 'static {
    let (ctx, step) = (ctx.clone(), format!("{step}/undo"));
    move |_| std::future::ready(log::note(&ctx, &step).map_err(Into::into))
}
