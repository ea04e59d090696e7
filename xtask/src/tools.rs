//! Finds developer tools of pinned versions, or builds them once.

use crate::run;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// A program of crates.io that only developers and CI need.
#[derive(Clone, Copy)]
pub(crate) enum Tool {
    CargoDeny,
    /// Reads the counters of instrumented programs.
    Cov,
}

struct Pin {
    package: &'static str,
    version: &'static str,
    program: &'static str,
    /// Whether `PROGRAM --version` works. Otherwise the folder in the cache identifies the version.
    has_version_flag: bool,
    /// "0" for a tool that works for seconds: an optimised build takes minutes.
    opt_level: &'static str,
}

impl Tool {
    fn pin(self) -> Pin {
        match self {
            Tool::CargoDeny => {
                Pin { package: "cargo-deny", version: "0.20.2", program: "cargo-deny", has_version_flag: true, opt_level: "0" }
            }
            Tool::Cov => Pin { package: "llvm_profparser", version: "0.15.0", program: "cov", has_version_flag: false, opt_level: "3" },
        }
    }
}

/// Settings that shorten the build of a tool.
const QUICK_PROFILE: [(&str, &str); 5] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
    ("CARGO_PROFILE_RELEASE_STRIP", "symbols"),
    ("CARGO_PROFILE_RELEASE_INCREMENTAL", "false"),
];

/// The program in exactly the pinned version: from `PATH`, from the cache, or built into the cache.
pub(crate) fn path(tool: Tool) -> Result<PathBuf> {
    let pin = tool.pin();
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(program) = on_path(&pin, std::env::split_paths(&search_path)) {
        return Ok(program);
    }
    let home = cache(|name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))?;
    let program = home.join(folder(&pin)).join("bin").join(pin.program);
    if !is_pinned(&program, &pin) {
        build(&pin, &home)?;
        ensure!(is_pinned(&program, &pin), "{} is not {} {} after its build", program.display(), pin.package, pin.version);
    }
    Ok(program)
}

fn on_path(pin: &Pin, folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    folders
        .map(|folder| folder.join(pin.program))
        .find(|program| pin.has_version_flag && has_version(program, pin))
}

/// Whether a program in the cache is the pinned one.
fn is_pinned(program: &Path, pin: &Pin) -> bool {
    if pin.has_version_flag { has_version(program, pin) } else { program.is_file() }
}

fn has_version(program: &Path, pin: &Pin) -> bool {
    program.is_file()
        && Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|output| states_version(&output.stdout, pin))
}

/// Whether the first line is `NAME VERSION`, as clap prints it.
fn states_version(stdout: &[u8], pin: &Pin) -> bool {
    let text = String::from_utf8_lossy(stdout);
    text.lines().next().unwrap_or_default().split_whitespace().nth(1) == Some(pin.version)
}

fn folder(pin: &Pin) -> String {
    format!("{}-{}", pin.package, pin.version)
}

/// `$XTASK_TOOLS`, else `steadfast/tools` in the user's cache folder.
fn cache(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf> {
    let user_cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let folder = variable("XTASK_TOOLS").or_else(|| Some(user_cache()?.join("steadfast/tools")));
    let folder = folder.context("no folder for developer tools: set XTASK_TOOLS, or HOME")?;
    Ok(std::path::absolute(folder)?)
}

/// Builds into a folder beside the final one and renames it, so that an interrupted build leaves no
/// half of a tool.
#[expect(clippy::disallowed_methods, reason = "the build time of a tool is wall time, for a person")]
fn build(pin: &Pin, home: &Path) -> Result<()> {
    std::fs::create_dir_all(home).with_context(|| format!("the folder {} cannot be created", home.display()))?;
    let work = tempfile::Builder::new().prefix(".building-").tempdir_in(home)?;
    println!("{} {} is not installed; building it once into {}", pin.package, pin.version, home.display());
    let began = Instant::now();
    run(&mut install(pin, work.path())).with_context(|| format!("{} was not built", pin.package))?;
    publish(&work.path().join("root"), &home.join(folder(pin)))?;
    println!("built {} {} in {:.0} s; later calls use it from there", pin.package, pin.version, began.elapsed().as_secs_f64());
    Ok(())
}

fn install(pin: &Pin, work: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["install", "--quiet", "--locked", "--version", pin.version, pin.package, "--root"]);
    cargo.arg(work.join("root")).current_dir(work); // outside the workspace, whose settings are not meant for tools
    cargo.env("CARGO_TARGET_DIR", work.join("target")).env_remove("RUSTFLAGS");
    cargo.envs(QUICK_PROFILE).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", pin.opt_level);
    cargo
}

/// Moves a finished build to its place; a build that another process has finished meanwhile gives
/// way.
fn publish(built: &Path, place: &Path) -> Result<()> {
    if place.exists() {
        std::fs::remove_dir_all(place)?;
    }
    std::fs::rename(built, place).with_context(|| format!("{} cannot be moved to {}", built.display(), place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const PIN: Pin = Pin { package: "cargo-deny", version: "0.20.2", program: "cargo-deny", has_version_flag: true, opt_level: "0" };

    fn program(folder: &Path, version: &str) -> PathBuf {
        let program = folder.join(PIN.package);
        std::fs::write(&program, format!("#!/bin/sh\necho cargo-deny {version}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn only_pinned_version_is_taken() {
        let (older, exact) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        program(older.path(), "0.20.1");
        let expected = program(exact.path(), "0.20.2");
        let folders = [older.path().to_owned(), exact.path().to_owned()];
        assert_eq!(on_path(&PIN, folders.clone().into_iter()), Some(expected));
        assert_eq!(on_path(&PIN, folders[..1].iter().cloned()), None);
    }

    #[test]
    fn program_without_version_stays_in_cache() {
        let folder = tempfile::tempdir().unwrap();
        let pin = Pin { has_version_flag: false, ..PIN };
        let program = program(folder.path(), "0.20.2");
        assert_eq!(on_path(&pin, std::iter::once(folder.path().to_owned())), None);
        assert!(is_pinned(&program, &pin) && !is_pinned(&folder.path().join("absent"), &pin));
    }

    #[test]
    fn version_is_compared_whole() {
        assert!(states_version(b"cargo-deny 0.20.2\n", &PIN));
        assert!(!states_version(b"cargo-deny 0.20.20\n", &PIN));
        assert!(!states_version(b"", &PIN));
    }

    #[test]
    fn cache_folder_follows_environment() {
        let folder_of = |set: &'static [(&str, &str)]| {
            cache(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value))).ok()
        };
        assert_eq!(folder_of(&[("HOME", "/h")]), Some("/h/.cache/steadfast/tools".into()));
        assert_eq!(folder_of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]), Some("/x/steadfast/tools".into()));
        assert_eq!(folder_of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x"), ("XTASK_TOOLS", "/t")]), Some("/t".into()));
        assert_eq!(folder_of(&[]), None);
    }

    #[test]
    fn finished_build_replaces_older_one() {
        let home = tempfile::tempdir().unwrap();
        let (built, place) = (home.path().join("built"), home.path().join("place"));
        for (folder, content) in [(&place, "old"), (&built, "new")] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("file"), content).unwrap();
        }
        publish(&built, &place).unwrap();
        assert_eq!(std::fs::read_to_string(place.join("file")).unwrap(), "new");
        assert!(!built.exists());
    }
}
