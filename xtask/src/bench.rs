//! Runs benchmarks in the `dist` profile, which packages are built with.

use crate::{cargo, counts, run as run_command, target};
use anyhow::Result;

const PROFILE: [&str; 4] = ["--profile", "dist", "--quiet", "--locked"];

/// Runs the benchmark that the arguments name; without any, lists all.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if arguments.first().is_some_and(|name| name == "counts") {
        return counts::run(&arguments[1..]);
    }
    let mut bench = cargo();
    if arguments.first().is_some_and(|name| name == "http") {
        // This benchmark starts the binary as users do.
        run_command(cargo().arg("build").args(PROFILE).args(["--package", "steadfast-cli"]))?;
        bench.env("BENCH_BINARY", target().join("dist/steadfast"));
    }
    run_command(bench.arg("run").args(PROFILE).args(["--package", "steadfast-bench", "--"]).args(arguments))
}
