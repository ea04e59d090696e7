//! Runs scenarios under callgrind and reads how many instructions they took.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

/// The functions at which the collection begins and pauses; see the package's `region.rs`.
const TOGGLES: [&str; 2] =
    ["--toggle-collect=steadfast_bench_counts::region::counted*", "--toggle-collect=steadfast_bench_counts::region::uncounted*"];

#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) operations: u64,
}

/// The counts of a scenario, in instructions of a whole run.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) scenario: String,
    operations: u64,
    runs: Vec<u64>,
}

impl Counted {
    /// Instructions per operation: those of the middle run.
    pub(super) fn middle(&self) -> u64 {
        let mut runs = self.runs.clone();
        runs.sort_unstable();
        let middle = runs.get(runs.len() / 2).copied().unwrap_or_default();
        (middle + self.operations / 2) / self.operations
    }

    /// How far apart the largest and the smallest count are, as a share of the smallest.
    pub(super) fn spread(&self) -> f64 {
        let (Some(least), Some(most)) = (self.runs.iter().min(), self.runs.iter().max()) else { return 0.0 };
        (most - least) as f64 / (*least).max(1) as f64
    }
}

/// The scenarios that the program lists.
pub(super) fn scenarios(binary: &Path) -> Result<Vec<Scenario>> {
    let output = Command::new(binary).output().with_context(|| format!("{} did not start", binary.display()))?;
    ensure!(output.status.success(), "{} did not list its scenarios", binary.display());
    listed(&String::from_utf8(output.stdout)?)
}

fn listed(text: &str) -> Result<Vec<Scenario>> {
    let read = |line: &str| {
        let (name, operations) = line.split_once(' ')?;
        Some(Scenario { name: name.into(), operations: operations.parse().ok().filter(|operations| *operations > 0)? })
    };
    text.lines().map(|line| read(line).with_context(|| format!("not a scenario: {line:?}"))).collect()
}

/// Counts each of them so many times, as many at once as there are processors.
pub(super) fn count_all(binary: &Path, folder: &Path, scenarios: &[Scenario], runs: usize) -> Result<Vec<Counted>> {
    std::fs::create_dir_all(folder)?;
    let jobs: Vec<(&Scenario, usize)> = scenarios.iter().flat_map(|scenario| (0..runs).map(move |run| (scenario, run))).collect();
    let (queue, counts) = (Mutex::new(jobs.into_iter()), Mutex::new(Vec::new()));
    let work = || -> Result<()> {
        while let Some((scenario, run)) = queue.lock().ok().and_then(|mut queue| queue.next()) {
            let count = count(binary, &folder.join(format!("{}.{run}", scenario.name)), &scenario.name)?;
            counts.lock().map_err(|_| anyhow::anyhow!("a count panicked"))?.push((scenario.name.clone(), count));
        }
        Ok(())
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| anyhow::anyhow!("a count panicked"))?)
    })?;
    let counts = counts.into_inner()?;
    let of = |scenario: &Scenario| Counted {
        scenario: scenario.name.clone(),
        operations: scenario.operations,
        runs: counts.iter().filter(|(name, _)| *name == scenario.name).map(|(_, count)| *count).collect(),
    };
    Ok(scenarios.iter().map(of).collect())
}

/// One run. The profile stays in `file`, for `callgrind_annotate`.
fn count(binary: &Path, file: &Path, scenario: &str) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no", "--error-exitcode=99"])
        .args(TOGGLES)
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(binary)
        .arg(scenario)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()
        .context("valgrind did not start")?;
    ensure!(output.status.success(), "{scenario} failed under valgrind:\n{}", String::from_utf8_lossy(&output.stderr));
    let profile = std::fs::read_to_string(file).with_context(|| format!("callgrind did not write {}", file.display()))?;
    let total = total(&profile).with_context(|| format!("{} has no total", file.display()))?;
    ensure!(total > 0, "{scenario}: callgrind found no counted region");
    Ok(total)
}

fn total(profile: &str) -> Option<u64> {
    let line = profile.lines().rev().find_map(|line| line.strip_prefix("totals:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(runs: &[u64]) -> Counted {
        Counted { scenario: "retry".into(), operations: 10, runs: runs.to_vec() }
    }

    #[test]
    fn middle_run_is_the_count() {
        assert_eq!(counted(&[1_000, 5_000, 1_016]).middle(), 102);
    }

    #[test]
    fn spread_is_share_of_smallest_count() {
        assert!((counted(&[1_000, 1_003, 1_001]).spread() - 0.003).abs() < 1e-9);
    }

    #[test]
    fn total_is_read_from_profile() {
        assert_eq!(total("events: Ir\nsummary: 7\n\ntotals: 1234\n"), Some(1234));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn scenarios_are_read_from_list() {
        let scenarios = listed("one-step 1500\nretry 1000\n").unwrap();
        assert_eq!((scenarios[1].name.as_str(), scenarios[1].operations), ("retry", 1000));
        assert!(listed("retry\n").is_err() && listed("retry 0\n").is_err());
    }
}
