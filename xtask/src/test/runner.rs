//! Builds the commands that run tests, for nextest and for cargo's own runner.

use super::groups::{Group, Scope};
use crate::cargo;
use std::process::{Command, Stdio};

/// The program that runs tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// A process per test: limits for slow tests, groups, the time of each test.
    Nextest,
    /// The runner that comes with Rust; the tests and their outcome are the same.
    Cargo,
}

/// The tests to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Everything,
    /// The unit tests of all crates but the PostgreSQL store, whose unit tests need a server.
    Units,
    Package(String),
    Group(Group),
    /// All tests that are in none of these groups.
    Outside(Vec<Group>),
}

impl Runner {
    pub(crate) fn at_hand() -> Self {
        let mut nextest = cargo();
        nextest.args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
        if nextest.status().is_ok_and(|status| status.success()) { Runner::Nextest } else { Runner::Cargo }
    }

    /// Compiles all tests and runs none.
    pub(crate) fn build(self) -> Command {
        let mut build = cargo();
        match self {
            Runner::Nextest => build.args(["nextest", "run", "--no-run", "--workspace", "--locked", "--cargo-quiet"]),
            Runner::Cargo => build.args(["test", "--no-run", "--workspace", "--locked", "--quiet"]),
        };
        build
    }

    pub(crate) fn commands(self, selection: &Selection) -> Vec<Command> {
        match self {
            Runner::Nextest => vec![nextest(selection)],
            Runner::Cargo => cargo_tests(selection),
        }
    }
}

fn nextest(selection: &Selection) -> Command {
    let mut run = cargo();
    run.args(["nextest", "run", "--locked", "--cargo-quiet"]);
    match selection {
        Selection::Package(package) => run.args(["--package", package, "--no-tests", "pass"]),
        Selection::Everything => run.arg("--workspace"),
        Selection::Units => run.args(["--workspace", "--exclude", "steadfast-store-postgres", "--lib", "--bins"]),
        Selection::Group(group) => run.args(["--workspace", "--filterset", &filter(group.scopes())]),
        Selection::Outside(groups) => {
            let scopes: Vec<Scope> = groups.iter().flat_map(|group| group.scopes()).copied().collect();
            run.args(["--workspace", "--filterset", &format!("not ({})", filter(&scopes))])
        }
    };
    run
}

/// The expression of nextest that selects these tests.
fn filter(scopes: &[Scope]) -> String {
    let terms = scopes.iter().map(|scope| match scope.modules {
        [] => format!("package({})", scope.package),
        modules => format!("(package({}) & test(/^({})/))", scope.package, modules.join("|")),
    });
    terms.collect::<Vec<_>>().join(" | ")
}

fn cargo_tests(selection: &Selection) -> Vec<Command> {
    let test = |arguments: &[&str]| {
        let mut test = cargo();
        test.args(["test", "--locked", "--quiet", "--no-fail-fast"]).args(arguments);
        test
    };
    match selection {
        Selection::Everything | Selection::Outside(_) => vec![test(&["--workspace", "--lib", "--bins", "--tests"])],
        Selection::Units => vec![test(&["--workspace", "--exclude", "steadfast-store-postgres", "--lib", "--bins"])],
        Selection::Package(package) => vec![test(&["--package", package, "--tests"])],
        Selection::Group(group) => group.scopes().iter().map(|scope| in_scope(test(&["--package", scope.package]), scope)).collect(),
    }
}

fn in_scope(mut test: Command, scope: &Scope) -> Command {
    if !scope.modules.is_empty() {
        test.args(["--test", "it", "--"]).args(scope.modules);
    }
    test
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shown;

    #[test]
    fn nextest_selects_modules_by_prefix() {
        let shown = shown(&nextest(&Selection::Group(Group::Crash)));
        assert!(shown.ends_with("--filterset package(steadfast-crash-test) | (package(steadfast-cli) & test(/^(restarts::)/))"), "{shown}");
    }

    #[test]
    fn group_without_server_excludes_all_others() {
        let shown = shown(&nextest(&Selection::Outside(vec![Group::Browser])));
        assert!(
            shown.ends_with(
                "--filterset not ((package(steadfast-server) & test(/^(pages::)/)) | (package(steadfast-cli) & test(/^(console::)/)))"
            ),
            "{shown}"
        );
    }

    #[test]
    fn cargo_runs_each_scope_by_itself() {
        let commands: Vec<String> = cargo_tests(&Selection::Group(Group::Crash)).iter().map(shown).collect();
        let expected = [
            "test --locked --quiet --no-fail-fast --package steadfast-crash-test",
            "test --locked --quiet --no-fail-fast --package steadfast-cli --test it -- restarts::",
        ];
        assert_eq!(commands, expected);
    }
}
