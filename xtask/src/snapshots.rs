//! Compares committed snapshots with the code, or accepts new ones.

use crate::{api, cargo, root};
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;

/// The crate that compares; a package with snapshot tests depends on it.
const COMPARER: &str = "steadfast-test-snapshots";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let request = Request::read(arguments)?;
    let known = packages(&root())?;
    let mut test = cargo();
    test.arg("test").args(["--locked", "--no-fail-fast", "--tests"]);
    for package in request.select(&known)? {
        test.args(["--package", package]);
    }
    if request.accept {
        ensure!(
            std::env::var_os("CI").is_none_or(|value| value.is_empty()),
            "the variable CI is set: CI compares snapshots, it accepts none"
        );
        test.env("TEST_SNAPSHOTS", "accept");
    }
    let tests = crate::run(test.arg("snapshot"));
    let api = request.settle_api();
    if let (Err(_), Err(mismatch)) = (&tests, &api) {
        eprintln!("\n{mismatch:#}");
    }
    tests.and(api)
}

/// The command line of `cargo xtask snapshots`.
#[derive(Debug, Default, PartialEq)]
struct Request {
    accept: bool,
    /// Empty: all packages that have snapshot tests.
    packages: Vec<String>,
}

impl Request {
    fn read(arguments: &[String]) -> Result<Request> {
        let mut request = Request::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--accept" => request.accept = true,
                "-p" | "--package" => request.packages.push(rest.next().context("-p needs the name of a package")?.clone()),
                other => bail!("unknown argument: {other}; usage: cargo xtask snapshots [--accept] [-p PACKAGE]..."),
            }
        }
        Ok(request)
    }

    /// The API of the sdk is compared here and not by a test of the sdk, because rustdoc has to
    /// read it.
    fn settle_api(&self) -> Result<()> {
        match (self.packages.is_empty() || self.packages.iter().any(|package| package == api::SDK), self.accept) {
            (false, _) => Ok(()),
            (true, true) => api::accept(),
            (true, false) => api::check(),
        }
    }

    fn select<'a>(&'a self, known: &'a [String]) -> Result<&'a [String]> {
        if self.packages.is_empty() {
            return Ok(known);
        }
        for package in &self.packages {
            ensure!(known.contains(package), "{package} has no snapshot tests; these packages have: {}", known.join(", "));
        }
        Ok(&self.packages)
    }
}

/// Names of the packages that depend on the comparing crate, sorted.
fn packages(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root.join("crates"))? {
        let manifest = std::fs::read_to_string(entry?.path().join("Cargo.toml"))?;
        if manifest.lines().any(|line| line.starts_with(COMPARER)) {
            names.push(name(&manifest)?.to_string());
        }
    }
    names.sort();
    Ok(names)
}

fn name(manifest: &str) -> Result<&str> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("name = \""));
    line.and_then(|rest| rest.strip_suffix('"')).context("a manifest names no package")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Request> {
        Request::read(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_select_packages() {
        assert_eq!(read("").unwrap(), Request::default());
        let request = read("--accept -p a --package b").unwrap();
        assert_eq!(request, Request { accept: true, packages: vec!["a".into(), "b".into()] });
        assert_eq!(request.select(&["a".into(), "b".into(), "c".into()]).unwrap(), ["a", "b"]);
    }

    #[test]
    fn unknown_argument_is_rejected() {
        assert!(read("--all").unwrap_err().to_string().contains("--all"));
        assert!(read("-p").is_err());
    }

    #[test]
    fn package_without_snapshots_is_rejected() {
        let request = read("-p b").unwrap();
        let error = request.select(&["a".into()]).unwrap_err();
        assert_eq!(error.to_string(), "b has no snapshot tests; these packages have: a");
    }

    #[test]
    fn packages_come_from_manifests() {
        let packages = packages(&root()).unwrap();
        assert!(packages.contains(&"steadfast-server".to_string()), "{packages:?}");
        assert!(!packages.contains(&COMPARER.to_string()), "{packages:?}");
    }
}
