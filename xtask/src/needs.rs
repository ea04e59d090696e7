//! Installs the programs that tests start, from the distribution's packages.

use crate::{run, shown};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::Command;

/// A program, its path (a `*` is one folder of any name), and the package that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    program: &'static str,
    package: &'static str,
    purpose: &'static str,
}

pub(crate) const CHROMIUM: Need = Need { program: "/usr/bin/chromium", package: "chromium", purpose: "tests of the console" };
pub(crate) const REDIS: Need = Need { program: "/usr/bin/redis-server", package: "redis-server", purpose: "tests of shared tenants" };
pub(crate) const POSTGRES: Need =
    Need { program: "/usr/lib/postgresql/*/bin/postgres", package: "postgresql", purpose: "tests of the PostgreSQL store" };
pub(crate) const OPENSSL: Need = Need { program: "/usr/bin/openssl", package: "openssl", purpose: "certificates of test servers" };
pub(crate) const VALGRIND: Need = Need { program: "/usr/bin/valgrind", package: "valgrind", purpose: "counts of instructions" };

/// The needs of the whole suite.
pub(crate) const ALL: [Need; 5] = [CHROMIUM, REDIS, POSTGRES, OPENSSL, VALGRIND];

/// Installs the missing ones with apt, after a question if there is a terminal to answer it and
/// neither `yes` nor `CI` is set.
pub(crate) fn install(needs: &[Need], yes: bool) -> Result<()> {
    let mut missing: Vec<Need> = Vec::new();
    for need in needs {
        if !is_installed(need.program) && !missing.contains(need) {
            missing.push(*need);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    println!("missing packages:");
    for need in &missing {
        println!("  {:<14} {} ({})", need.package, need.program, need.purpose);
    }
    let mut packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    packages.sort_unstable();
    packages.dedup();
    let by_hand = format!("apt-get install --no-install-recommends {}", packages.join(" "));
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!("this machine has no apt-get; install by hand, to the paths above: {}", packages.join(" "));
    }
    if asks(yes, std::env::var_os("CI").is_some(), std::io::stdin().is_terminal()) && !confirmed(&mut std::io::stdin().lock())? {
        bail!("nothing was installed; install by hand and repeat: {by_hand}");
    }
    apt(&["update", "-qq"], &[], &by_hand)?;
    apt(&["install", "-y", "--no-install-recommends"], &packages, &by_hand)?;
    if packages.contains(&"postgresql") {
        // The package may have started a server of its own; the tests start private ones.
        let _may_not_run = as_root("service").args(["postgresql", "stop"]).status();
    }
    Ok(())
}

/// Without a terminal, an answer could never come.
fn asks(yes: bool, ci: bool, terminal: bool) -> bool {
    terminal && !yes && !ci
}

fn confirmed(answers: &mut impl BufRead) -> Result<bool> {
    print!("Install them with apt-get? [Y/n] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    answers.read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "" | "y" | "Y" | "yes") && answer.ends_with('\n'))
}

fn is_installed(program: &str) -> bool {
    let Some((parent, rest)) = program.split_once("/*/") else { return Path::new(program).exists() };
    let folders = std::fs::read_dir(parent).into_iter().flatten().flatten();
    folders.map(|folder| folder.path().join(rest)).any(|program| program.exists())
}

fn apt(arguments: &[&str], packages: &[&str], by_hand: &str) -> Result<()> {
    let mut apt = as_root("apt-get");
    apt.args(arguments).args(packages).env("DEBIAN_FRONTEND", "noninteractive");
    println!("\n── {} {}", apt.get_program().display(), shown(&apt));
    run(&mut apt).with_context(|| format!("the packages were not installed; install by hand and repeat: {by_hand}"))
}

fn as_root(program: &str) -> Command {
    if is_root() {
        return Command::new(program);
    }
    let mut sudo = Command::new("sudo");
    sudo.arg(program);
    sudo
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_needs_terminal_without_consent() {
        assert!(asks(false, false, true));
        for (yes, ci, terminal) in [(true, false, true), (false, true, true), (false, false, false)] {
            assert!(!asks(yes, ci, terminal));
        }
    }

    #[test]
    fn closed_input_is_no_consent() {
        assert!(confirmed(&mut "y\n".as_bytes()).unwrap());
        assert!(confirmed(&mut "\n".as_bytes()).unwrap());
        assert!(!confirmed(&mut "n\n".as_bytes()).unwrap());
        assert!(!confirmed(&mut "".as_bytes()).unwrap());
    }
}
