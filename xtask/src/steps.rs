//! Runs the steps of a check and reports the time of each.

use crate::{run, shown};
use anyhow::{Context, Result};
use std::process::Command;
use std::time::{Duration, Instant};

/// The steps that have ended, in order.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    ended: Vec<(String, Duration)>,
}

impl Steps {
    /// Runs a command; the error names the command that repeats it.
    pub(crate) fn command(&mut self, name: &str, command: &mut Command) -> Result<()> {
        let shown = format!("{} {}", program(command), shown(command));
        self.step(name, &shown, || run(command).with_context(|| format!("{name} failed; repeat it with: {shown}")))
    }

    /// Runs a check of this program; `verb` repeats it.
    pub(crate) fn verb(&mut self, name: &str, verb: &str, check: impl FnOnce() -> Result<()>) -> Result<()> {
        let shown = format!("cargo xtask {verb}");
        self.step(name, &shown, || check().with_context(|| format!("{name} failed; repeat it with: {shown}")))
    }

    fn step(&mut self, name: &str, shown: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("\n── {name}: {shown}");
        let started = now();
        let outcome = work();
        let time = started.elapsed();
        println!("── {name}: {}", seconds(time));
        self.ended.push((name.to_owned(), time));
        outcome
    }

    /// Prints the time of each step and the sum.
    pub(crate) fn print_times(&self) {
        println!("\n   time  step");
        for (name, time) in &self.ended {
            println!("{:>7}  {name}", seconds(*time));
        }
        println!("{:>7}  in total", seconds(self.ended.iter().map(|(_, time)| *time).sum()));
    }
}

fn program(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    program.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[expect(clippy::disallowed_methods, reason = "the time that a step of a build takes is real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn failed_step_names_repeating_command() {
        let mut steps = Steps::default();
        let error = steps.verb("tidy", "tidy", || bail!("a figure is worse")).unwrap_err();
        assert_eq!(format!("{error:#}"), "tidy failed; repeat it with: cargo xtask tidy: a figure is worse");
        assert_eq!(steps.ended.len(), 1);
    }
}
