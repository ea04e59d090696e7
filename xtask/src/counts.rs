//! Counts the instructions of fixed scenarios and compares them with the baseline.

mod baseline;
mod callgrind;
mod compare;
mod machine;
mod reasons;

use crate::{cargo, needs, root, run as run_command, target};
use anyhow::{Context, Result, bail, ensure};
use baseline::Baseline;
use callgrind::{Counted, Scenario};
use machine::Machine;
use std::collections::BTreeMap;
use std::path::PathBuf;

const PACKAGE: &str = "steadfast-bench-counts";

/// The number of runs that admit a scenario, and how far apart their counts may be.
const ADMISSION_RUNS: usize = 10;
pub(crate) const NOISE: f64 = 0.003;

/// The arguments of the command.
#[derive(Debug, Default, PartialEq)]
struct Asked {
    scenario: Option<String>,
    /// Write the counts into the baseline.
    accept: bool,
    /// Count every scenario ten times and fail if the counts differ.
    admit: bool,
}

/// # Errors
/// If a count rose, a scenario has no baseline, or something could not be run.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let asked = asked(arguments)?;
    needs::install(&[needs::VALGRIND], false)?;
    let binary = build()?;
    let scenarios = wanted(callgrind::scenarios(&binary)?, asked.scenario.as_deref())?;
    let runs = if asked.admit { ADMISSION_RUNS } else { 1 };
    let counted = callgrind::count_all(&binary, &target().join("callgrind"), &scenarios, runs)?;
    if asked.admit {
        return admit(&counted);
    }
    let counts: BTreeMap<String, u64> = counted.into_iter().map(|counted| (counted.scenario.clone(), counted.middle())).collect();
    let (machine, old) = (Machine::this()?, Baseline::read(&path())?);
    if asked.accept {
        let new = baseline::accepted(old.as_ref(), machine, &counts, asked.scenario.is_none())?;
        return new.write(&path());
    }
    let old = old.context("there is no baseline; write it with: cargo xtask bench counts --accept")?;
    let comparison = compare::compare(&old, &machine, &counts, asked.scenario.is_none());
    print!("{comparison}");
    reasons::check(&old)?;
    comparison.outcome()
}

fn asked(arguments: &[String]) -> Result<Asked> {
    let mut asked = Asked::default();
    for argument in arguments {
        match argument.as_str() {
            "--accept" => asked.accept = true,
            "--admit" => asked.admit = true,
            name if !name.starts_with('-') && asked.scenario.is_none() => asked.scenario = Some(name.to_owned()),
            _ => bail!("unknown argument: {argument}; usage: cargo xtask bench counts [SCENARIO] [--accept] [--admit]"),
        }
    }
    ensure!(!(asked.accept && asked.admit), "`--accept` and `--admit` exclude each other");
    Ok(asked)
}

fn wanted(scenarios: Vec<Scenario>, name: Option<&str>) -> Result<Vec<Scenario>> {
    let Some(name) = name else { return Ok(scenarios) };
    let known: Vec<String> = scenarios.iter().map(|scenario| scenario.name.clone()).collect();
    let wanted: Vec<Scenario> = scenarios.into_iter().filter(|scenario| scenario.name == name).collect();
    ensure!(!wanted.is_empty(), "unknown scenario: {name}; the scenarios are {}", known.join(", "));
    Ok(wanted)
}

fn build() -> Result<PathBuf> {
    run_command(cargo().args(["build", "--quiet", "--locked", "--profile", "counts", "--package", PACKAGE]))?;
    Ok(target().join("counts").join(PACKAGE))
}

fn admit(counted: &[Counted]) -> Result<()> {
    println!("{:<18} {:>22} {:>10}", "scenario", "instructions/operation", "spread");
    for counted in counted {
        println!("{:<18} {:>22} {:>9.4}%", counted.scenario, counted.middle(), counted.spread() * 100.0);
    }
    let noisy: Vec<&str> = counted
        .iter()
        .filter(|counted| counted.spread() >= NOISE)
        .map(|counted| counted.scenario.as_str())
        .collect();
    ensure!(noisy.is_empty(), "{ADMISSION_RUNS} runs differ by 0.3 % or more: {}", noisy.join(", "));
    Ok(())
}

fn path() -> PathBuf {
    root().join(baseline::PATH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn arguments_are_read() {
        let expected = Asked { scenario: Some("retry".into()), accept: true, admit: false };
        assert_eq!(asked(&arguments("retry --accept")).unwrap(), expected);
        assert_eq!(asked(&[]).unwrap(), Asked::default());
    }

    #[test]
    fn wrong_arguments_are_rejected() {
        for wrong in ["--fast", "retry one-step", "--accept --admit"] {
            assert!(asked(&arguments(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unknown_scenario_lists_known_ones() {
        let scenario = |name: &str| Scenario { name: name.into(), operations: 1 };
        let error = wanted(vec![scenario("retry"), scenario("one-step")], Some("two-steps")).unwrap_err();
        assert_eq!(error.to_string(), "unknown scenario: two-steps; the scenarios are retry, one-step");
    }
}
