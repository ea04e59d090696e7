//! The project's own chores. `cargo xtask` lists them.
#![allow(clippy::print_stdout, reason = "a command line tool")]

mod deny;
#[cfg_attr(not(test), expect(dead_code, reason = "tidy calls it"))]
mod figures;
mod needs;
mod test;
mod tidy;
mod toolchain;
mod tools;

use anyhow::{Result, bail};
use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask test                                everything CI checks: format, clippy, tests, doc tests, examples
cargo xtask deny                                licences, sources, duplicates and advisories of dependencies, by deny.toml
cargo xtask bench [NAME] [--json] [--quick]     measurements, built with optimisation; `cargo xtask bench` lists them
cargo xtask tidy [--report] [--update]          names, prose and structure against the budgets in tidy.toml
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
    match arguments.first().map(String::as_str) {
        Some("test") if arguments.len() == 1 => {
            toolchain::report()?;
            test::run_everything()
        }
        Some("deny") if arguments.len() == 1 => deny::run(),
        Some("bench") => bench(&arguments[1..]),
        Some("tidy") => tidy::run(&arguments[1..]),
        None | Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            Ok(())
        }
        Some(_) => bail!("unknown command: {}\n\n{HELP}", arguments.join(" ")),
    }
}

fn bench(arguments: &[String]) -> Result<()> {
    let mut bench = cargo();
    if arguments.first().is_some_and(|name| name == "http") {
        run(cargo().args(["build", "--quiet", "--release", "--locked", "--package", "steadfast-cli"]))?; // it is started as users start it
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
        bench.env("BENCH_BINARY", std::path::absolute(target.join("release/steadfast"))?);
    }
    bench
        .args(["run", "--quiet", "--release", "--locked", "--package", "steadfast-bench", "--"])
        .args(arguments);
    run(&mut bench)
}

/// The cargo that runs us, in the root of the workspace.
fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
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
