//! Builds the tests and finds the programs that they consist of.

use crate::shown;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a build with tests.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TestPrograms {
    /// Test programs, and programs that tests start.
    pub(super) executables: Vec<PathBuf>,
    /// The crates whose whole source a test program contains, by their folder below `crates`.
    pub(super) crate_folders: BTreeSet<String>,
}

/// A line that cargo prints with `--message-format`.
#[derive(Deserialize)]
struct CargoMessage {
    executable: Option<PathBuf>,
    target: Option<BuildTarget>,
}

#[derive(Deserialize)]
struct BuildTarget {
    kind: Vec<String>,
    src_path: PathBuf,
}

/// Builds the programs that `cargo test` runs.
pub(super) fn build_tests(test: &mut Command) -> Result<TestPrograms> {
    let build = with_messages(test);
    let output = { build }.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "cargo {} failed ({})", shown(test), output.status);
    parse_messages(&String::from_utf8(output.stdout)?)
}

/// The command with flags before its first `--`.
fn with_messages(test: &Command) -> Command {
    let mut build = Command::new(test.get_program());
    let mut arguments = test.get_args();
    build.args(arguments.by_ref().take_while(|argument| *argument != "--"));
    build.args(["--no-run", "--message-format=json-render-diagnostics"]);
    build.envs(test.get_envs().filter_map(|(name, value)| Some((name, value?))));
    build.current_dir(test.get_current_dir().unwrap_or_else(|| Path::new(".")));
    build
}

fn parse_messages(messages: &str) -> Result<TestPrograms> {
    let mut programs = TestPrograms::default();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: CargoMessage = serde_json::from_str(line).context("cannot read a message of cargo")?;
        let (Some(executable), Some(target)) = (message.executable, message.target) else { continue };
        programs.executables.push(executable);
        if !target.kind.iter().any(|kind| kind == "proc-macro") {
            programs.crate_folders.extend(crate_folder(&target.src_path));
        }
    }
    ensure!(!programs.executables.is_empty(), "no test program was built; select a crate that has tests");
    Ok(programs)
}

/// `kernel` for `…/crates/kernel/src/lib.rs`.
fn crate_folder(source: &Path) -> Option<String> {
    let folder = source.parent().filter(|folder| folder.ends_with("src"))?.parent()?;
    Some(folder.file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(source: &str, kind: &str, executable: &str) -> String {
        format!(r#"{{"reason":"compiler-artifact","target":{{"kind":["{kind}"],"src_path":"{source}"}},"executable":{executable}}}"#)
    }

    #[test]
    fn unit_tests_measure_their_crate() {
        let messages = [
            artifact("/w/crates/kernel/src/lib.rs", "lib", r#""/t/kernel""#),
            artifact("/w/crates/store/src/lib.rs", "lib", "null"),
            artifact("/w/crates/sdk/tests/it/main.rs", "test", r#""/t/it""#),
            artifact("/w/crates/sdk-macros/src/lib.rs", "proc-macro", r#""/t/macros""#),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let programs = parse_messages(&messages.join("\n")).unwrap();
        assert_eq!(programs.executables, ["/t/kernel", "/t/it", "/t/macros"].map(PathBuf::from));
        assert_eq!(programs.crate_folders, BTreeSet::from(["kernel".to_owned()]));
    }

    #[test]
    fn build_without_tests_is_error() {
        assert!(parse_messages(r#"{"reason":"build-finished","success":true}"#).is_err());
    }

    #[test]
    fn test_filter_does_not_reach_build() {
        let mut test = Command::new("cargo");
        test.args(["test", "-p", "a", "--", "--skip", "b"]).env("A", "b");
        let build = with_messages(&test);
        assert_eq!(shown(&build), "test -p a --no-run --message-format=json-render-diagnostics");
        assert_eq!(build.get_envs().count(), 1);
    }
}
