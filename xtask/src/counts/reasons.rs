//! Checks that a baseline that moved upwards has its reason in the changelog.

use super::baseline::{Baseline, PATH};
use crate::root;
use anyhow::{Result, ensure};
use std::process::Command;

/// The folder of the changelog's entries, from the root of the repository.
const ENTRIES: &str = "changes/unreleased";

/// # Errors
/// If a count of the baseline is larger than before this change, and no entry names the scenario
/// and the new count in one line.
pub(super) fn check(now: &Baseline) -> Result<()> {
    let Some(before) = before() else {
        println!("git has no earlier baseline; reasons for higher counts are not checked");
        return Ok(());
    };
    let missing = unexplained(&before, now, &entries()?);
    ensure!(
        missing.is_empty(),
        "the baseline of {} moved upwards; name the scenario, the new count and the reason in one line of a file in {ENTRIES}/",
        missing.join(", ")
    );
    Ok(())
}

/// Scenarios whose count rose without a reason. Counts of different machines are not compared.
fn unexplained(before: &Baseline, now: &Baseline, entries: &str) -> Vec<String> {
    if before.machine != now.machine {
        return Vec::new();
    }
    let rose = |(scenario, count): &(&String, &u64)| before.instructions.get(*scenario).is_some_and(|old| *count > old);
    let is_explained = |scenario: &str, count: u64| {
        let words = |line: &str| line.split([' ', '`', ',', ';', ':', '.', '(', ')']).map(str::to_owned).collect::<Vec<_>>();
        let names = |line: &str| [scenario.to_owned(), count.to_string()].iter().all(|part| words(line).contains(part));
        entries.lines().any(names)
    };
    let rises = now.instructions.iter().filter(rose);
    rises
        .filter(|(scenario, count)| !is_explained(scenario, **count))
        .map(|(scenario, _)| scenario.clone())
        .collect()
}

/// The baseline before this change: where the branch left `origin/main`, or the parent of the last
/// commit.
fn before() -> Option<Baseline> {
    let head = git(&["rev-parse", "HEAD"])?;
    let fork = git(&["merge-base", "HEAD", "origin/main"]).filter(|fork| *fork != head);
    let base = fork.unwrap_or_else(|| "HEAD~1".into());
    Baseline::parse(&git(&["show", &format!("{base}:{PATH}")])?).ok()
}

/// The output of git, if there is git and it succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(root()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The text of all entries.
fn entries() -> Result<String> {
    let Ok(folder) = std::fs::read_dir(root().join(ENTRIES)) else { return Ok(String::new()) };
    let mut text = String::new();
    for entry in folder {
        let path = entry?.path();
        if path.is_file() {
            text.push_str(&std::fs::read_to_string(path)?);
            text.push('\n');
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::machine::Machine;
    use super::*;

    fn baseline(rustc: &str, one_step: u64) -> Baseline {
        let machine =
            Machine { rustc: rustc.into(), libc: "glibc 2.36".into(), valgrind: "valgrind-3.19.0".into(), cpu: "x86_64 avx".into() };
        Baseline { machine, instructions: [("one-step".into(), one_step)].into() }
    }

    fn missing(count: u64, entries: &str) -> Vec<String> {
        unexplained(&baseline("rustc 1.95.0", 100_000), &baseline("rustc 1.95.0", count), entries)
    }

    #[test]
    fn raised_baseline_needs_reason() {
        assert_eq!(missing(100_001, ""), ["one-step"]);
        assert_eq!(missing(100_000, ""), Vec::<String>::new());
        assert_eq!(missing(90_000, ""), Vec::<String>::new());
    }

    #[test]
    fn entry_with_count_is_reason() {
        let reason = "A start checks the deadline: `one-step` takes 105000 instead of 100000 instructions.";
        assert_eq!(missing(105_000, reason), Vec::<String>::new());
    }

    #[test]
    fn entry_of_other_rise_is_none() {
        let older = "`one-step` takes 100000 instructions.\nRetries: 105000 instructions.";
        assert_eq!(missing(105_000, older), ["one-step"]);
    }

    #[test]
    fn other_machine_needs_no_reason() {
        assert_eq!(unexplained(&baseline("rustc 1.94.0", 1), &baseline("rustc 1.95.0", 2), ""), Vec::<String>::new());
    }

    #[test]
    fn new_scenario_needs_no_reason() {
        let mut before = baseline("rustc 1.95.0", 1);
        before.instructions.clear();
        assert_eq!(unexplained(&before, &baseline("rustc 1.95.0", 2), ""), Vec::<String>::new());
    }
}
