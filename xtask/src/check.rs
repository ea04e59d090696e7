//! Runs the quick checks of a developer, and applies automatic corrections.

use crate::steps::Steps;
use crate::{cargo, test, toolchain, without_arguments};
use anyhow::Result;

/// Everything that is worth knowing before a commit and takes under three minutes.
pub(crate) fn check(arguments: &[String]) -> Result<()> {
    without_arguments(arguments)?;
    toolchain::report()?;
    let mut steps = Steps::default();
    let outcome = test::static_checks(&mut steps);
    steps.print_times();
    outcome?;
    test::unit_tests()?;
    println!("\nthe quick checks passed; `cargo xtask test` runs all");
    Ok(())
}

/// Clippy first, because its suggestions may be wider than a line.
pub(crate) fn fix(arguments: &[String]) -> Result<()> {
    without_arguments(arguments)?;
    let mut steps = Steps::default();
    let clippy = ["clippy", "--fix", "--allow-dirty", "--allow-staged", "--workspace", "--all-targets", "--locked", "--quiet"];
    steps.command("suggestions of clippy", cargo().args(clippy))?;
    steps.command("format", cargo().args(["fmt", "--all"]))
}

pub(crate) fn docs(arguments: &[String]) -> Result<()> {
    without_arguments(arguments)?;
    test::documentation(&mut Steps::default())
}
