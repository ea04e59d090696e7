//! Runs the developer commands; `cargo xtask` lists them.
#![allow(clippy::print_stdout, reason = "a command line tool")]

mod api;
mod bench;
mod check;
mod counts;
mod coverage;
mod deny;
mod dist;
mod figures;
mod needs;
mod snapshots;
mod steps;
mod test;
mod tidy;
mod toolchain;
mod tools;

use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask check                               before a commit: format, tidy, lints, unit tests
cargo xtask fix                                 applies the suggestions of clippy, then formats
cargo xtask test                                the whole suite, as CI runs it
cargo xtask test -p CRATE | --group GROUP       the tests of a crate, or of postgres, redis, browser, crash, examples
                 --yes                          installs missing packages without a question
cargo xtask snapshots [--accept] [-p CRATE]     public interfaces against the files in snapshots/
cargo xtask tidy [--report] [--update]          names, prose and structure against the budgets in tidy.toml
cargo xtask deny                                licences, sources, duplicates and advisories of dependencies, by deny.toml
cargo xtask docs                                the API documentation; a warning is an error
cargo xtask coverage [-p CRATE]                 line coverage per crate; takes long
cargo xtask dist                                the binary of a package, stripped, with a debug file beside it
cargo xtask bench [NAME] [--json] [--quick]     measurements of the `dist` profile; `cargo xtask bench` lists them
cargo xtask bench counts [SCENARIO] [--accept] [--admit]
                                                instructions of fixed scenarios, against docs/performance/counts.toml
";

fn main() -> ExitCode {
    match chore() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\n{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn chore() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((verb, rest)) = arguments.split_first() else { return help() };
    match verb.as_str() {
        "check" => check::check(rest),
        "fix" => check::fix(rest),
        "test" => test::run(rest),
        "snapshots" => snapshots::run(rest),
        "tidy" => tidy::run(rest),
        "deny" => without_arguments(rest).and_then(|()| deny::run()),
        "docs" => check::docs(rest),
        "coverage" => coverage::run(rest),
        "dist" => dist::run(rest),
        "bench" => bench::run(rest),
        "help" | "--help" | "-h" => help(),
        _ => bail!("unknown command: {}\n\n{HELP}", arguments.join(" ")),
    }
}

fn help() -> Result<()> {
    print!("{HELP}");
    Ok(())
}

fn without_arguments(arguments: &[String]) -> Result<()> {
    if arguments.is_empty() { Ok(()) } else { bail!("unknown argument: {}\n\n{HELP}", arguments.join(" ")) }
}

/// The cargo that runs us, in the root of the workspace.
fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

fn root() -> PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The folder that cargo builds into, as an absolute path.
fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    std::path::absolute(&target).unwrap_or(target)
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status()?;
    if !status.success() {
        bail!("{} {} failed ({status})", command.get_program().display(), shown(command));
    }
    Ok(())
}

fn shown(command: &Command) -> String {
    command.get_args().map(|argument| argument.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
