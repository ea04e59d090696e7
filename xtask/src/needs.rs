//! What the tests need beside Rust: programs from the distribution's packages. What is missing is installed before the tests begin.

use crate::{run, shown};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// A program, where it has to be, and the package that brings it.
struct Need {
    program: &'static str,
    package: &'static str,
    what_for: &'static str,
}

const NEEDS: [Need; 3] = [
    Need { program: "/usr/bin/chromium", package: "chromium", what_for: "the console is tested in it" },
    Need { program: "/usr/bin/redis-server", package: "redis-server", what_for: "what instances share is tested in it" },
    Need { program: "/usr/bin/openssl", package: "openssl", what_for: "certificates of test servers are made by it" },
];

/// Installs what is missing, with apt.
pub(crate) fn install() -> Result<()> {
    let missing: Vec<&Need> = NEEDS.iter().filter(|need| !Path::new(need.program).exists()).collect();
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
    apt(&["install", "-y", "--no-install-recommends"], &packages)
}

fn apt(arguments: &[&str], packages: &[&str]) -> Result<()> {
    let mut apt = if is_root() { Command::new("apt-get") } else { Command::new("sudo") };
    if !is_root() {
        apt.arg("apt-get");
    }
    apt.args(arguments).args(packages).env("DEBIAN_FRONTEND", "noninteractive");
    println!("\n── {} {}", apt.get_program().display(), shown(&apt));
    run(&mut apt).with_context(|| format!("not installed; do it by hand: apt-get install {}", packages.join(" ")))
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}
