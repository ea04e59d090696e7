//! Measures line coverage of product crates.
//!
//! The compiler inserts counters into the crates of the workspace (`-C instrument-coverage`);
//! dependencies stay as other builds have made them. Every process maps its counters into a file
//! (`%c`), so a process that a test kills counts as well. `cov` of the crate llvm_profparser reads
//! the files, because the tools of LLVM itself have to match the compiler's version and come only
//! with some toolchains.

mod crate_table;
mod line_hits;
mod test_programs;

use crate::{cargo, root, target, tidy, tools};
use anyhow::{Context, Result};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

const HELP: &str = "\
cargo xtask coverage [ARGUMENTS OF cargo test]

Runs the tests with counters and prints the line coverage of each product crate, lowest first.
Without arguments it runs the whole suite. `-p CRATE` measures one crate by its own tests.

Lines that only tests compile do not count. Documentation tests and the macro crate, which runs
inside the compiler, are left out.
";

/// Instruments everything but the macro crate, whose code runs inside the compiler.
/// Other shells drop variables with a hyphen in their name, such as `CARGO_BIN_EXE_private-redis`.
const COMPILER: &str = r#"#!/usr/bin/env bash
case " $* " in *" --crate-type proc-macro "*) exec "$@" ;; esac
exec "$@" -C instrument-coverage -C llvm-args=-runtime-counter-relocation
"#;

/// Prints the coverage of each product crate. Failed tests make it too low and are an error.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if let [flag] = arguments
        && ["--help", "-h"].contains(&flag.as_str())
    {
        print!("{HELP}");
        return Ok(());
    }
    let reader = tools::path(tools::Tool::Cov)?;
    let folder = CoverageFolder::with_fresh_counters()?;
    let programs = test_programs::build_tests(&mut folder.cargo_test(arguments))?;
    let tests = crate::run(&mut folder.cargo_test(arguments));
    let report = line_hits::source_report(&reader, &folder.counter_files()?, &programs.executables)?;
    let hits = line_hits::parse_report(&report, &root().canonicalize()?);
    print!("\n{}", crate_table::crate_table(&tidy::product_files()?, &programs.crate_folders, &hits));
    tests.context("tests failed, so the coverage is too low")
}

/// `coverage` in the target folder: the compiler's wrapper and the files of counters.
struct CoverageFolder {
    path: PathBuf,
}

impl CoverageFolder {
    /// Leaves out counters of an earlier run.
    fn with_fresh_counters() -> Result<Self> {
        let folder = Self { path: target().join("coverage") };
        if folder.counter_folder().exists() {
            std::fs::remove_dir_all(folder.counter_folder())?;
        }
        std::fs::create_dir_all(folder.counter_folder()).with_context(|| format!("cannot create {}", folder.counter_folder().display()))?;
        std::fs::write(folder.compiler_wrapper(), COMPILER)?;
        std::fs::set_permissions(folder.compiler_wrapper(), std::fs::Permissions::from_mode(0o755))?;
        Ok(folder)
    }

    fn counter_folder(&self) -> PathBuf {
        self.path.join("counters")
    }

    fn compiler_wrapper(&self) -> PathBuf {
        self.path.join("instrumented-rustc")
    }

    /// Tests of the selected packages, without their documentation tests.
    fn cargo_test(&self, arguments: &[String]) -> Command {
        let mut test = cargo();
        test.args(["test", "--locked", "--no-fail-fast", "--tests"]);
        if !selects_package(arguments) {
            test.arg("--workspace");
        }
        test.args(arguments);
        test.env("RUSTC_WORKSPACE_WRAPPER", self.compiler_wrapper()).env("CARGO_INCREMENTAL", "0");
        test.env("LLVM_PROFILE_FILE", self.counter_folder().join("%c%m.profraw"));
        test
    }

    /// One file of counters for each program that ran.
    fn counter_files(&self) -> Result<Vec<PathBuf>> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(self.counter_folder())?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        files.sort();
        Ok(files)
    }
}

fn selects_package(arguments: &[String]) -> bool {
    let mut flags = arguments.iter().take_while(|argument| *argument != "--");
    flags.any(|flag| flag.starts_with("-p") || flag.starts_with("--package"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &str) -> Vec<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn selection_replaces_whole_workspace() {
        let selections = ["-p a", "--package=a", "--test it", "-- -p a", ""].map(|words| selects_package(&arguments(words)));
        assert_eq!(selections, [true, true, false, false, false]);
    }
}
