//! How soon a process that was killed works again, and with how much memory.
//!
//! Two processes, both this program: one builds a store of open runs and is killed, the other opens it. Times count from the moment at which the second
//! is started.

mod build;
mod copies;
mod reopen;

use crate::report::{Measured, Report};
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use steadfast::{Clock, Ctx, Failure, HOUR, Policy, SystemClock, workflow};

/// The word that makes this program such a process.
pub(crate) const CHILD: &str = "child";

/// What a child says when it has built the store.
const BUILT: &str = "built";

/// Whether this process builds: the work that is to be under way when it is killed never ends in it.
static BUILDING: AtomicBool = AtomicBool::new(false);

/// What the process that opens the store has seen. Times are in milliseconds since it was started.
#[derive(Deserialize, Serialize)]
struct Opened {
    /// The engine takes requests.
    open_ms: f64,
    /// The first of the work that was under way has begun again.
    first_ms: Option<f64>,
    /// All of it is done.
    done_ms: Option<f64>,
    /// A new run has its result.
    served_ms: f64,
    rss_mib: f64,
    rss_max_mib: f64,
}

pub(crate) async fn child(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["instance", of_postgres @ ..] => crate::postgres::child(of_postgres).await,
        ["build", folder, runs] => build::build(Path::new(folder), runs.parse()?).await,
        ["copies", folder, runs] => copies::build(Path::new(folder), runs.parse()?).await,
        ["open", folder, due, started_us] => reopen::open(Path::new(folder), due.parse()?, started_us.parse()?).await,
        _ => bail!("{arguments:?} is nothing for a child to do"),
    }
}

pub(crate) async fn measure(report: &Report, folder: &Path, quick: bool) -> Result<()> {
    let mixed = if quick { 3_000 } else { 100_000 };
    built("build", &folder.join("mixed"), mixed)?;
    let opened = opened(&folder.join("mixed"), build::under_way(mixed))?;
    say(report, &opened, &format!("{mixed} open runs, {} of them under way", build::under_way(mixed)))?;
    if !quick {
        let asleep = 1_000_000;
        built("copies", &folder.join("asleep"), asleep)?;
        let opened = self::opened(&folder.join("asleep"), 0)?;
        say(report, &opened, &format!("{asleep} sleeping runs"))?;
    }
    Ok(())
}

fn say(report: &Report, opened: &Opened, of: &str) -> Result<()> {
    let lines = [
        (Some(opened.open_ms), "ms until it is open"),
        (opened.first_ms, "ms until the first work begins"),
        (opened.done_ms, "ms until all that was under way is done"),
        (Some(opened.served_ms), "ms until a new run has its result"),
        (Some(opened.rss_mib), "MiB in use"),
        (Some(opened.rss_max_mib), "MiB at the most"),
    ];
    for (value, unit) in lines {
        if let Some(value) = value {
            report.say(&Measured::value("restart", value, format!("{unit}; {of}")))?;
        }
    }
    Ok(())
}

/// Has a process build a store and kills it when it has.
fn built(how: &str, folder: &Path, runs: usize) -> Result<()> {
    let mut child = start(&[how, &folder.to_string_lossy(), &runs.to_string()])?;
    let said = line(&mut child);
    child.kill()?;
    child.wait()?;
    ensure!(said? == BUILT, "the store could not be built");
    Ok(())
}

fn opened(folder: &Path, due: usize) -> Result<Opened> {
    let now = SystemClock.now().as_micros().to_string();
    let mut child = start(&["open", &folder.to_string_lossy(), &due.to_string(), &now])?;
    let said = line(&mut child);
    child.wait()?;
    Ok(serde_json::from_str(&said?)?)
}

fn start(arguments: &[&str]) -> Result<Child> {
    Ok(Command::new(std::env::current_exe()?)
        .arg(CHILD)
        .args(arguments)
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()?)
}

fn line(child: &mut Child) -> Result<String> {
    let stdout = child.stdout.take().context("the child's output is a pipe")?;
    Ok(BufReader::new(stdout).lines().next().context("the child has said nothing")??)
}

#[workflow]
async fn sleeping(ctx: Ctx, _i: usize) -> Result<(), Failure> {
    ctx.sleep(24 * HOUR).await
}

#[workflow]
async fn signalled(ctx: Ctx, _i: usize) -> Result<(), Failure> {
    ctx.signal::<()>("go").await?;
    Ok(())
}

#[workflow]
async fn backing_off(ctx: Ctx, _i: usize) -> Result<(), Failure> {
    ctx.step("call", || async { Err(Failure::transient("nobody answers")) })
        .retry(Policy::constant(24 * HOUR))
        .await
}

/// Its step is under way when the process is killed.
#[workflow]
async fn working(ctx: Ctx, _i: usize) -> Result<(), Failure> {
    ctx.step("work", reopen::work).await
}
