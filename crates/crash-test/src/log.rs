//! What was executed, by which process and when: one line per attempt, written in one piece before the attempt does anything.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use steadfast::{Clock, Ctx, SystemClock, Timestamp};

static LOG: OnceLock<(PathBuf, u32)> = OnceLock::new();

/// Says where the log is, and which process this is.
pub fn init(path: PathBuf, process: u32) {
    let _set_once = LOG.set((path, process));
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Which process.
    pub process: u32,
    /// When.
    pub at: Timestamp,
    /// The run.
    pub run: String,
    /// The step, with its occurrence.
    pub step: String,
    /// The idempotency key.
    pub key: String,
    /// The attempt.
    pub attempt: u32,
    /// What the attempt has read of what was said before it.
    pub read: Option<u32>,
}

/// Notes that an attempt begins.
///
/// # Errors
/// If the line cannot be written.
pub fn note(ctx: &Ctx, step: &str) -> Result<()> {
    write(ctx, step, "-")
}

/// Notes that an attempt begins, and what it has read.
///
/// # Errors
/// If the line cannot be written.
pub fn note_reading(ctx: &Ctx, step: &str, read: Option<u32>) -> Result<()> {
    write(ctx, step, &read.map_or_else(|| "-".into(), |read| read.to_string()))
}

fn write(ctx: &Ctx, step: &str, read: &str) -> Result<()> {
    let Some((path, process)) = LOG.get() else { return Ok(()) };
    let (at, run, attempt) = (SystemClock.now().as_micros(), ctx.run_id(), ctx.attempt());
    let key = ctx.idempotency_key().unwrap_or_default();
    append(path, &format!("{process} {at} {run} {step} {key} {attempt} {read}\n"))
}

/// Notes something else, after the number of this process.
///
/// # Errors
/// If the line cannot be written.
pub fn note_words(words: &str) -> Result<()> {
    let Some((path, process)) = LOG.get() else { return Ok(()) };
    append(path, &format!("{process} {words}\n"))
}

fn append(path: &Path, line: &str) -> Result<()> {
    OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())
}

/// All that was noted so far, by any process.
///
/// # Errors
/// If it cannot be read.
pub fn text() -> Result<String> {
    match LOG.get().map(|(path, _)| std::fs::read_to_string(path)) {
        Some(Err(error)) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        text => text.unwrap_or_else(|| Ok(String::new())),
    }
}

/// How many attempts of that step have begun so far, over all processes.
pub fn count(ctx: &Ctx, step: &str) -> usize {
    let Some((path, _)) = LOG.get() else { return 0 };
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let words = format!(" {} {step} ", ctx.run_id());
    text.lines().filter(|line| line.contains(&words)).count()
}

/// Notes that what that run fails of is repaired.
///
/// # Errors
/// If it cannot be written.
pub fn repair(run: &str) -> Result<()> {
    let Some((path, _)) = LOG.get() else { return Ok(()) };
    append(&repairs(path), &format!("{run}\n"))
}

/// Whether what that run fails of is repaired.
pub fn is_repaired(run: &str) -> bool {
    let text = LOG.get().and_then(|(path, _)| std::fs::read_to_string(repairs(path)).ok());
    text.unwrap_or_default().lines().any(|line| line == run)
}

fn repairs(log: &Path) -> PathBuf {
    log.with_extension("repairs")
}

/// Reads a log. A last line that a kill cut short is left out.
pub fn read(text: &str) -> Vec<Line> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().filter_map(line).collect()
}

fn line(text: &str) -> Option<Line> {
    let words: Vec<&str> = text.split(' ').collect();
    let [process, at, run, step, key, attempt, read] = words[..] else { return None };
    Some(Line {
        process: process.parse().ok()?,
        at: Timestamp::from_micros(at.parse().ok()?),
        run: run.into(),
        step: step.into(),
        key: key.into(),
        attempt: attempt.parse().ok()?,
        read: read.parse().ok(),
    })
}
