//! Compares counts with the baseline and decides whether the check fails.

use super::baseline::Baseline;
use super::machine::Machine;
use anyhow::{Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// How far a count may be from its baseline, as a share of that.
const TOLERANCE: f64 = 0.03;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    Rose,
    Fell,
    /// The baseline does not have it.
    New,
    /// The program does not have it any more.
    Gone,
}

#[derive(Debug)]
struct Line {
    scenario: String,
    count: Option<u64>,
    baseline: Option<u64>,
    verdict: Verdict,
}

/// Counts beside their baseline. Its text is the table.
#[derive(Debug)]
pub(super) struct Comparison {
    lines: Vec<Line>,
    /// The differences between this machine and that of the baseline.
    differences: Vec<String>,
}

pub(super) fn compare(baseline: &Baseline, machine: &Machine, counts: &BTreeMap<String, u64>, is_all: bool) -> Comparison {
    let old = baseline.instructions.keys().filter(|_| is_all);
    let scenarios: BTreeSet<&String> = counts.keys().chain(old).collect();
    let line = |scenario: &String| {
        let (count, baseline) = (counts.get(scenario).copied(), baseline.instructions.get(scenario).copied());
        Line { scenario: scenario.clone(), count, baseline, verdict: verdict(count, baseline) }
    };
    Comparison { lines: scenarios.into_iter().map(line).collect(), differences: baseline.machine.differences(machine) }
}

fn verdict(count: Option<u64>, baseline: Option<u64>) -> Verdict {
    let (Some(count), Some(baseline)) = (count, baseline) else {
        return if count.is_some() { Verdict::New } else { Verdict::Gone };
    };
    match change(count, baseline) {
        change if change > TOLERANCE => Verdict::Rose,
        change if change < -TOLERANCE => Verdict::Fell,
        _ => Verdict::Same,
    }
}

fn change(count: u64, baseline: u64) -> f64 {
    (count as f64 - baseline as f64) / baseline.max(1) as f64
}

impl Comparison {
    /// # Errors
    /// If the baseline lacks a scenario or has one too many, or a count rose on a machine whose
    /// counts can be compared.
    pub(super) fn outcome(&self) -> Result<()> {
        let having = |verdicts: &[Verdict]| {
            let lines = self.lines.iter().filter(|line| verdicts.contains(&line.verdict));
            lines.map(|line| line.scenario.as_str()).collect::<Vec<_>>().join(", ")
        };
        let unmatched = having(&[Verdict::New, Verdict::Gone]);
        if !unmatched.is_empty() {
            bail!("the baseline and the program have different scenarios: {unmatched}; run: cargo xtask bench counts --accept");
        }
        let rose = having(&[Verdict::Rose]);
        if !rose.is_empty() && self.differences.is_empty() {
            bail!(
                "instructions rose by more than 3 %: {rose}; make it faster, or run `cargo xtask bench counts --accept` and give the reason in changes/unreleased/"
            );
        }
        Ok(())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<18} {:>22} {:>10} {:>8}", "scenario", "instructions/operation", "baseline", "change")?;
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        if !self.differences.is_empty() {
            writeln!(
                f,
                "\nCounts are only reported, because this machine is not that of the baseline:\n  {}",
                self.differences.join("\n  ")
            )?;
        } else if self.lines.iter().any(|line| line.verdict == Verdict::Fell) {
            writeln!(f, "\nCounts fell by more than 3 %; lower the baseline with: cargo xtask bench counts --accept")?;
        }
        Ok(())
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let change = match (self.count, self.baseline) {
            (Some(count), Some(baseline)) => format!("{:+.2}%", change(count, baseline) * 100.0),
            _ => "-".to_owned(),
        };
        let note = match self.verdict {
            Verdict::Same => "",
            Verdict::Rose => "  rose",
            Verdict::Fell => "  fell",
            Verdict::New => "  has no baseline",
            Verdict::Gone => "  is gone",
        };
        write!(f, "{:<18} {:>22} {:>10} {:>8}{note}", self.scenario, number(self.count), number(self.baseline), change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine { rustc: "rustc 1.95.0".into(), libc: "glibc 2.36".into(), valgrind: "valgrind-3.19.0".into(), cpu: "x86_64 avx".into() }
    }

    fn counts(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
        counts.iter().map(|(scenario, count)| (scenario.to_string(), *count)).collect()
    }

    fn baseline() -> Baseline {
        Baseline { machine: machine(), instructions: counts(&[("one-step", 100_000), ("retry", 200_000)]) }
    }

    fn compared(one_step: u64) -> Comparison {
        compare(&baseline(), &machine(), &counts(&[("one-step", one_step), ("retry", 200_000)]), true)
    }

    #[test]
    fn rise_within_tolerance_passes() {
        compared(103_000).outcome().unwrap();
    }

    #[test]
    fn rise_over_tolerance_fails() {
        let error = compared(103_001).outcome().unwrap_err().to_string();
        assert!(error.starts_with("instructions rose by more than 3 %: one-step;"), "{error}");
    }

    #[test]
    fn fall_asks_for_lower_baseline() {
        let comparison = compared(96_999);
        comparison.outcome().unwrap();
        assert!(comparison.to_string().contains("lower the baseline"), "{comparison}");
        assert!(!compared(97_000).to_string().contains("lower the baseline"));
    }

    #[test]
    fn other_machine_reports_rise() {
        let other = Machine { rustc: "rustc 1.96.0".into(), ..machine() };
        let comparison = compare(&baseline(), &other, &counts(&[("one-step", 200_000), ("retry", 200_000)]), true);
        comparison.outcome().unwrap();
        let table = comparison.to_string();
        assert!(table.contains("rustc: rustc 1.95.0 in the baseline, rustc 1.96.0 here") && table.contains("+100.00%  rose"), "{table}");
    }

    #[test]
    fn scenario_without_baseline_fails() {
        let all = counts(&[("one-step", 100_000), ("retry", 200_000), ("wire-call", 1)]);
        let error = compare(&baseline(), &machine(), &all, true).outcome().unwrap_err().to_string();
        assert!(error.contains("different scenarios: wire-call;"), "{error}");
    }

    #[test]
    fn missing_scenario_fails() {
        let error = compare(&baseline(), &machine(), &counts(&[("one-step", 100_000)]), true)
            .outcome()
            .unwrap_err()
            .to_string();
        assert!(error.contains("different scenarios: retry;"), "{error}");
    }

    #[test]
    fn single_scenario_ignores_others() {
        compare(&baseline(), &machine(), &counts(&[("one-step", 100_000)]), false).outcome().unwrap();
    }
}
