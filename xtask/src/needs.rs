//! What the tests need beside Rust: programs from the distribution's packages. What is missing is installed before the tests begin.

use crate::{run, shown};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// A program, where it has to be (a `*` is one folder of any name), and the package that brings it.
struct Need {
    program: &'static str,
    package: &'static str,
    what_for: &'static str,
}

const NEEDS: [Need; 4] = [
    Need { program: "/usr/bin/chromium", package: "chromium", what_for: "the console is tested in it" },
    Need { program: "/usr/bin/redis-server", package: "redis-server", what_for: "what instances share is tested in it" },
    Need {
        program: "/usr/lib/postgresql/*/bin/postgres",
        package: "postgresql",
        what_for: "the store for several machines is tested in it",
    },
    Need { program: "/usr/bin/openssl", package: "openssl", what_for: "certificates of test servers are made by it" },
];

/// Installs what is missing, with apt.
pub(crate) fn install() -> Result<()> {
    let missing: Vec<&Need> = NEEDS.iter().filter(|need| !is_there(need.program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for need in &missing {
        println!("{} is missing ({})", need.program, need.what_for);
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!("this machine has no apt; install these by hand, so that they are where the tests look: {}", packages.join(" "));
    }
    apt(&["update", "-qq"], &[])?;
    apt(&["install", "-y", "--no-install-recommends"], &packages)?;
    if packages.contains(&"postgresql") {
        // The package may have started a server of its own; tests start theirs.
        let _none_was_started = as_root("service").args(["postgresql", "stop"]).status();
    }
    Ok(())
}

fn is_there(program: &str) -> bool {
    let Some((parent, rest)) = program.split_once("/*/") else { return Path::new(program).exists() };
    let folders = std::fs::read_dir(parent).into_iter().flatten().flatten();
    folders.map(|folder| folder.path().join(rest)).any(|program| program.exists())
}

fn apt(arguments: &[&str], packages: &[&str]) -> Result<()> {
    let mut apt = as_root("apt-get");
    apt.args(arguments).args(packages).env("DEBIAN_FRONTEND", "noninteractive");
    println!("\n── {} {}", apt.get_program().display(), shown(&apt));
    run(&mut apt).with_context(|| format!("not installed; do it by hand: apt-get install {}", packages.join(" ")))
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
