//! Reads and writes the baseline of instruction counts.

use super::NOISE;
use super::machine::Machine;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// From the root of the repository.
pub(super) const PATH: &str = "docs/performance/counts.toml";

const HEAD: &str = "# Instructions per operation, on the machine below. `cargo xtask bench counts --accept` writes this file.\n\n";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Baseline {
    pub(super) machine: Machine,
    /// Instructions per operation, by scenario.
    pub(super) instructions: BTreeMap<String, u64>,
}

impl Baseline {
    /// The baseline, if there is one.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(path)?;
        Baseline::parse(&text).map(Some).with_context(|| format!("{} is not a baseline", path.display()))
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        Ok(toml::from_str(text)?)
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, format!("{HEAD}{}", toml::to_string(self)?))?;
        println!("{PATH} is written; a count that rose needs a reason in changes/unreleased/");
        Ok(())
    }
}

/// The baseline with new counts; one that differs by noise stays. One scenario can be accepted only
/// where the others were counted.
pub(super) fn accepted(old: Option<&Baseline>, machine: Machine, counts: &BTreeMap<String, u64>, is_all: bool) -> Result<Baseline> {
    let differences = old.map_or_else(Vec::new, |old| old.machine.differences(&machine));
    ensure!(is_all || differences.is_empty(), "accept all scenarios at once, because this machine differs: {}", differences.join("; "));
    let comparable = old.filter(|_| differences.is_empty());
    let kept = comparable.filter(|_| !is_all).map_or_else(BTreeMap::new, |old| old.instructions.clone());
    let settled = |(scenario, count): (&String, &u64)| {
        let old = comparable.and_then(|old| old.instructions.get(scenario).copied());
        (scenario.clone(), old.filter(|old| is_noise(*count, *old)).unwrap_or(*count))
    };
    Ok(Baseline { machine, instructions: kept.into_iter().chain(counts.iter().map(settled)).collect() })
}

fn is_noise(count: u64, old: u64) -> bool {
    count.abs_diff(old) as f64 <= old as f64 * NOISE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine { rustc: "rustc 1.95.0".into(), libc: "glibc 2.36".into(), valgrind: "valgrind-3.19.0".into(), cpu: "x86_64 avx".into() }
    }

    fn baseline() -> Baseline {
        Baseline { machine: machine(), instructions: [("one-step".into(), 50_000), ("retry".into(), 80_000)].into() }
    }

    #[test]
    fn written_baseline_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("performance/counts.toml");
        assert_eq!(Baseline::read(&path).unwrap(), None);
        baseline().write(&path).unwrap();
        assert_eq!(Baseline::read(&path).unwrap(), Some(baseline()));
    }

    #[test]
    fn accepted_scenario_leaves_others_alone() {
        let new = accepted(Some(&baseline()), machine(), &[("retry".into(), 79_000)].into(), false).unwrap();
        assert_eq!(new.instructions, [("one-step".into(), 50_000), ("retry".into(), 79_000)].into());
    }

    #[test]
    fn noise_leaves_baseline_alone() {
        let counts = [("one-step".into(), 50_100), ("retry".into(), 80_400)].into();
        let new = accepted(Some(&baseline()), machine(), &counts, true).unwrap();
        assert_eq!(new.instructions, [("one-step".into(), 50_000), ("retry".into(), 80_400)].into());
    }

    #[test]
    fn accepting_all_drops_gone_scenarios() {
        let new = accepted(Some(&baseline()), machine(), &[("retry".into(), 79_000)].into(), true).unwrap();
        assert_eq!(new.instructions, [("retry".into(), 79_000)].into());
    }

    #[test]
    fn other_machine_accepts_only_all() {
        let other = Machine { rustc: "rustc 1.96.0".into(), ..machine() };
        assert!(accepted(Some(&baseline()), other.clone(), &[("retry".into(), 1)].into(), false).is_err());
        assert_eq!(accepted(Some(&baseline()), other.clone(), &[("retry".into(), 1)].into(), true).unwrap().machine, other);
    }
}
