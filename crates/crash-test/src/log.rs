//! What was executed, by which process: one line per attempt, written in one piece before the attempt does anything.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

static LOG: OnceLock<(PathBuf, u32)> = OnceLock::new();

/// Says where the log is, and which process this is.
pub fn init(path: PathBuf, process: u32) {
    let _set_once = LOG.set((path, process));
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// Which process.
    pub process: u32,
    /// The run.
    pub run: String,
    /// The step, with its occurrence.
    pub step: String,
}

/// Notes that an attempt begins.
///
/// # Errors
/// If the line cannot be written.
pub fn note(run: &str, step: &str) -> std::io::Result<()> {
    let Some((path, process)) = LOG.get() else { return Ok(()) };
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("{process} {run} {step}\n").as_bytes())
}

/// How many attempts of that step have begun so far, over all processes.
pub fn count(run: &str, step: &str) -> usize {
    let Some((path, _)) = LOG.get() else { return 0 };
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let suffix = format!(" {run} {step}");
    text.lines().filter(|line| line.ends_with(&suffix)).count()
}

/// Reads a log. A last line that a kill cut short is left out.
pub fn read(text: &str) -> Vec<Line> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let line = |line: &str| {
        let mut words = line.split(' ');
        let process = words.next()?.parse().ok()?;
        Some(Line { process, run: words.next()?.to_string(), step: words.next()?.to_string() })
    };
    whole.lines().filter_map(line).collect()
}
