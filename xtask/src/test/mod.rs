//! Runs the test suite: everything that CI checks, one crate, or one group.

mod examples;
mod groups;
mod runner;
mod shared_servers;
mod slowest;

use crate::steps::Steps;
use crate::{api, cargo, counts, deny, needs, tidy, toolchain};
use anyhow::{Context, Result, bail};
use groups::Group;
use runner::{Runner, Selection};
use shared_servers::SharedServer;
use slowest::Slowest;

pub(crate) const USAGE: &str = "cargo xtask test [-p CRATE]... [--group postgres|redis|browser|crash|examples]... [--yes]";

/// The arguments of the command.
#[derive(Debug, Default, PartialEq)]
struct Asked {
    packages: Vec<String>,
    groups: Vec<Group>,
    /// Install missing packages without a question.
    yes: bool,
}

/// Runs the selected tests; without a selection, the whole suite.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let asked = Asked::read(arguments)?;
    toolchain::report()?;
    if asked.packages.is_empty() && asked.groups.is_empty() {
        needs::install(&needs::ALL, asked.yes)?;
        whole_suite()
    } else {
        needs::install(&asked.needs(), asked.yes)?;
        selected(&asked)
    }
}

impl Asked {
    fn read(arguments: &[String]) -> Result<Self> {
        let mut asked = Asked::default();
        let mut rest = arguments.iter().map(String::as_str);
        while let Some(argument) = rest.next() {
            match argument {
                "-p" | "--package" => asked.packages.push(rest.next().context("`-p` needs the name of a crate")?.to_owned()),
                "--group" => asked.groups.push(Group::named(rest.next().context("`--group` needs the name of a group")?)?),
                "--yes" | "-y" => asked.yes = true,
                _ => bail!("unknown argument: {argument}; usage: {USAGE}"),
            }
        }
        Ok(asked)
    }

    /// The needs of the selected groups, and of those that hold tests of a selected crate.
    fn needs(&self) -> Vec<needs::Need> {
        let of_package = |group: &Group| self.packages.iter().any(|package| group.has_tests_of(package));
        let groups = Group::WITH_TESTS.into_iter().filter(|group| self.groups.contains(group) || of_package(group));
        groups.flat_map(Group::needs).copied().collect()
    }
}

/// One run of tests: the steps so far, and the means to run more.
#[derive(Debug)]
struct TestRun {
    steps: Steps,
    slowest: Slowest,
    runner: Runner,
    database: Option<SharedServer>,
}

impl TestRun {
    fn new() -> Self {
        TestRun { steps: Steps::default(), slowest: Slowest::default(), runner: Runner::at_hand(), database: None }
    }

    /// Runs the selected tests as one step, or as one step per crate where the runner cannot do
    /// better.
    fn tests(&mut self, name: &str, selection: &Selection) -> Result<()> {
        let mut commands = self.runner.commands(selection);
        let outcome = commands.iter_mut().try_for_each(|command| {
            self.database.iter().for_each(|database| database.announce(command));
            self.steps.command(name, command)
        });
        if self.runner == Runner::Nextest {
            let report = self.slowest.read_report();
            return outcome.and(report); // code that does not compile leaves no report
        }
        outcome
    }

    /// Prints the times, then returns the outcome.
    fn end(self, outcome: Result<()>) -> Result<()> {
        self.slowest.print();
        self.steps.print_times();
        outcome
    }
}

fn whole_suite() -> Result<()> {
    let mut run = TestRun::new();
    let outcome = all_steps(&mut run);
    run.end(outcome)?;
    println!("\nall checks passed");
    Ok(())
}

/// The steps in the order in which they are likely to fail.
fn all_steps(run: &mut TestRun) -> Result<()> {
    static_checks(&mut run.steps)?;
    run.steps.verb("dependencies", "deny", deny::run)?;
    all_tests(run)?;
    run.steps
        .command("doc tests", cargo().args(["test", "--workspace", "--locked", "--quiet", "--doc"]))?;
    documentation(&mut run.steps)?;
    run.steps.verb("public API of the sdk", "snapshots", api::check)?;
    features(&mut run.steps)?;
    run.steps.verb("examples", "test --group examples", examples::run_all)?;
    run.steps.verb("instructions", "bench counts", || counts::run(&[]))
}

/// Checks that run no code of the product.
pub(crate) fn static_checks(steps: &mut Steps) -> Result<()> {
    steps.command("format", cargo().args(["fmt", "--all", "--check"]))?;
    steps.verb("tidy", "tidy", || tidy::run(&[]))?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "--deny", "warnings"];
    steps.command("clippy", cargo().args(clippy))
}

/// With nextest, one step per group; cargo's runner cannot tell the groups apart and runs all tests
/// in one step.
fn all_tests(run: &mut TestRun) -> Result<()> {
    let mut build = run.runner.build();
    run.steps.command("build of the tests", &mut build)?;
    run.database = Some(shared_servers::start()?);
    if run.runner == Runner::Cargo {
        return run.tests("all tests", &Selection::Everything);
    }
    // A failure in one group does not hide those of the others.
    let plain = run.tests("tests without servers", &Selection::Outside(Group::WITH_TESTS.to_vec()));
    let groups = Group::WITH_TESTS.map(|group| group_tests(run, group));
    [plain].into_iter().chain(groups).collect()
}

fn group_tests(run: &mut TestRun, group: Group) -> Result<()> {
    run.tests(&format!("tests of group {}", group.name()), &Selection::Group(group))
}

/// The unit tests of all crates.
pub(crate) fn unit_tests() -> Result<()> {
    let mut run = TestRun::new();
    let outcome = run.tests("unit tests", &Selection::Units);
    run.end(outcome)
}

fn selected(asked: &Asked) -> Result<()> {
    let mut run = TestRun::new();
    let outcome = selected_tests(asked, &mut run);
    run.end(outcome)
}

fn selected_tests(asked: &Asked, run: &mut TestRun) -> Result<()> {
    let of_package = asked.packages.iter().any(|package| Group::Postgres.has_tests_of(package));
    if of_package || asked.groups.contains(&Group::Postgres) {
        run.database = Some(shared_servers::start()?);
    }
    for package in &asked.packages {
        let has_library = has_library(package)?;
        run.tests(&format!("tests of {package}"), &Selection::Package(package.clone()))?;
        if has_library {
            run.steps
                .command("doc tests", cargo().args(["test", "--locked", "--quiet", "--doc", "--package", package]))?;
        }
    }
    for group in &asked.groups {
        match group {
            Group::Examples => run.steps.verb("examples", "test --group examples", examples::run_all)?,
            _ => group_tests(run, *group)?,
        }
    }
    Ok(())
}

/// `cargo test --doc` rejects a crate without a library.
fn has_library(package: &str) -> Result<bool> {
    let folder = groups::folder_of(package).with_context(|| format!("no crate of the workspace is called {package}"))?;
    Ok(folder.join("src/lib.rs").is_file())
}

/// A warning of rustdoc is an error.
pub(crate) fn documentation(steps: &mut Steps) -> Result<()> {
    steps.command(
        "documentation",
        cargo()
            .args(["doc", "--workspace", "--features", "steadfast/testing", "--no-deps", "--locked", "--quiet"])
            .env("RUSTDOCFLAGS", "--deny warnings"),
    )
}

/// The sets of features that users of the library choose; the workspace itself compiles all of them
/// together.
const FEATURES: [&str; 5] = ["", "messages", "redis", "messages,redis", "embedded,testing"];

fn features(steps: &mut Steps) -> Result<()> {
    for features in FEATURES {
        let name = format!("sdk with features [{features}]");
        let mut check = cargo();
        check.args(["clippy", "--locked", "--quiet", "--package", "steadfast", "--lib", "--no-default-features"]);
        steps.command(&name, check.args(["--features", features, "--", "--deny", "warnings"]))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Asked> {
        Asked::read(&arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn crates_and_groups_are_read() {
        let asked = read(&["-p", "steadfast-kernel", "--group", "postgres", "--yes"]).unwrap();
        let expected = Asked { packages: vec!["steadfast-kernel".into()], groups: vec![Group::Postgres], yes: true };
        assert_eq!(asked, expected);
    }

    #[test]
    fn unknown_group_lists_the_groups() {
        let error = read(&["--group", "mysql"]).unwrap_err().to_string();
        assert_eq!(error, "unknown group: mysql; the groups are postgres, redis, browser, crash, examples");
    }

    #[test]
    fn unknown_argument_is_rejected() {
        assert!(read(&["--quick"]).unwrap_err().to_string().starts_with("unknown argument: --quick; usage: "));
    }
}
