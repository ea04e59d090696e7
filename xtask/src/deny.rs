//! Checks licences, sources, duplicates and advisories of all dependencies.

use crate::{root, tools};
use anyhow::{Context, Result};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const ADVISORIES: &str = "https://github.com/RustSec/advisory-db";

/// Where the advisories of a check come from.
#[derive(Debug, PartialEq)]
enum Advisories {
    /// `cargo deny` brings its copy up to date.
    Fetched,
    /// Their server is out of reach; a copy of an earlier check is there.
    Stored,
    Absent,
}

/// Runs the checks of `cargo deny` with `deny.toml`.
pub(crate) fn run() -> Result<()> {
    let program = tools::path(tools::Tool::CargoDeny)?;
    let advisories = Advisories::at_hand(is_reachable(ADVISORIES), &stored_databases());
    match advisories {
        Advisories::Fetched => {}
        Advisories::Stored => println!("advisories: {ADVISORIES} is out of reach; the stored copy is checked"),
        Advisories::Absent => println!("advisories: not checked, because {ADVISORIES} is out of reach and no copy is stored"),
    }
    for arguments in checks(&advisories) {
        let mut deny = Command::new(&program);
        deny.current_dir(root()).args(["--workspace", "--all-features", "--locked"]).args(*arguments);
        crate::run(&mut deny).context("a dependency breaks a rule of deny.toml; repeat with: cargo xtask deny")?;
    }
    Ok(())
}

/// A command each, because only the advisories may have to do without the network.
fn checks(advisories: &Advisories) -> &'static [&'static [&'static str]] {
    const RULES: &[&str] = &["check", "bans", "licenses", "sources"];
    match advisories {
        Advisories::Fetched => &[RULES, &["check", "advisories"]],
        Advisories::Stored => &[RULES, &["--offline", "check", "advisories"]],
        Advisories::Absent => &[RULES],
    }
}

impl Advisories {
    fn at_hand(is_reachable: bool, stored: &Path) -> Self {
        let is_database = |entry: std::fs::DirEntry| entry.path().join(".git").exists(); // a lock file stands beside them
        let is_stored = || std::fs::read_dir(stored).is_ok_and(|entries| entries.flatten().any(is_database));
        match is_reachable {
            true => Self::Fetched,
            false if is_stored() => Self::Stored,
            false => Self::Absent,
        }
    }
}

/// The folder in which `cargo deny` keeps databases.
fn stored_databases() -> PathBuf {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    cargo_home.unwrap_or_default().join("advisory-dbs")
}

/// Whether git lists the repository in time, without a question at the terminal.
fn is_reachable(repository: &str) -> bool {
    let mut git = Command::new("git");
    git.args(["ls-remote", "--quiet", repository, "HEAD"])
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    answers_within(&mut git, Duration::from_secs(10))
}

/// Whether the program writes to stdout and ends in time. A firewall that drops packets would hold
/// it for minutes.
fn answers_within(program: &mut Command, patience: Duration) -> bool {
    let Ok(mut child) = program.stdout(Stdio::piped()).spawn() else { return false };
    let (sender, answer) = mpsc::channel();
    if let Some(mut stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let is_whole = stdout.read_to_end(&mut text).is_ok();
            sender.send(is_whole && !text.is_empty())
        });
    }
    let is_answered = answer.recv_timeout(patience).unwrap_or(false);
    let _may_have_ended = child.kill();
    let _status = child.wait();
    is_answered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advisories_need_server_or_copy() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Advisories::at_hand(false, &folder.path().join("absent")), Advisories::Absent);
        assert_eq!(Advisories::at_hand(false, folder.path()), Advisories::Absent);
        std::fs::write(folder.path().join("db.lock"), "").unwrap();
        assert_eq!(Advisories::at_hand(false, folder.path()), Advisories::Absent);
        std::fs::create_dir_all(folder.path().join("advisory-db/.git")).unwrap();
        assert_eq!(Advisories::at_hand(false, folder.path()), Advisories::Stored);
        assert_eq!(Advisories::at_hand(true, folder.path()), Advisories::Fetched);
    }

    #[test]
    fn silent_program_is_given_up() {
        assert!(answers_within(Command::new("echo").arg("hash"), Duration::from_secs(60)));
        assert!(!answers_within(&mut Command::new("true"), Duration::from_secs(60)));
        assert!(!answers_within(Command::new("sleep").arg("600"), Duration::from_millis(50)));
        assert!(!answers_within(&mut Command::new("no-such-program"), Duration::from_secs(60)));
    }

    #[test]
    fn rules_are_checked_without_advisories() {
        let shown = |advisories| checks(&advisories).iter().map(|arguments| arguments.join(" ")).collect::<Vec<_>>();
        let rules = "check bans licenses sources";
        assert_eq!(shown(Advisories::Fetched), [rules, "check advisories"]);
        assert_eq!(shown(Advisories::Stored), [rules, "--offline check advisories"]);
        assert_eq!(shown(Advisories::Absent), [rules]);
    }
}
