//! The log of what was done for which task.

use crate::log;
use anyhow::Result;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Which process.
    pub process: u32,
    /// The task.
    pub task: String,
    /// What.
    pub what: What,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// That stage.
    Stage(u32),
    /// A person was about to have it retried.
    Retry,
}

/// Reads a log. A last line that a kill cut short is left out.
pub fn read(text: &str) -> Vec<Noted> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().filter_map(line).collect()
}

fn line(text: &str) -> Option<Noted> {
    let words: Vec<&str> = text.split(' ').collect();
    let [process, task, what] = words[..] else { return None };
    let what = match what {
        "retry" => What::Retry,
        stage => What::Stage(stage.strip_prefix('s')?.parse().ok()?),
    };
    Some(Noted { process: process.parse().ok()?, task: task.into(), what })
}

/// What is in the log of this process now.
pub(super) fn now() -> Result<Vec<Noted>> {
    Ok(read(&log::text()?))
}

/// How many stages of a task have been done, as far as the log says.
pub(super) fn stages_done(noted: &[Noted], task: &str) -> u32 {
    let stages = noted.iter().filter(|line| line.task == task).filter_map(|line| match line.what {
        What::Stage(stage) => Some(stage + 1),
        What::Retry => None,
    });
    stages.max().unwrap_or(0)
}

/// True if a person wanted it to be retried, and it has not come any further since.
pub(super) fn is_asked(noted: &[Noted], task: &str) -> bool {
    noted.iter().rfind(|line| line.task == task).is_some_and(|line| line.what == What::Retry)
}
