//! Checks the folder of snapshots against the tests of all crates.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries
        .map(|entry| entry.unwrap().path())
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .collect()
}

/// Test files of other crates that compare snapshots.
fn callers() -> Vec<(PathBuf, String)> {
    let crates = root().join("crates");
    let is_test = |path: &Path| path.extension().is_some_and(|end| end == "rs") && !path.starts_with(crates.join("test-snapshots"));
    let files = files(&crates).into_iter().filter(|path| is_test(path));
    files
        .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
        .filter(|(_, text)| text.contains("steadfast_test_snapshots"))
        .collect()
}

#[test]
fn caller_path_contains_snapshot() {
    let crates = root().join("crates");
    for (path, _) in callers() {
        let path = path.strip_prefix(&crates).unwrap();
        assert!(path.to_string_lossy().contains("snapshot"), "`cargo xtask snapshots` does not run {}", path.display());
    }
}

#[test]
fn committed_snapshot_has_test() {
    let folder = root().join("snapshots");
    let api = root().join("xtask/src/api.rs");
    let text = std::fs::read_to_string(&api).unwrap();
    let callers: Vec<_> = callers().into_iter().chain([(api, text)]).collect();
    for file in files(&folder) {
        let name = file.strip_prefix(&folder).unwrap().to_string_lossy().into_owned();
        let literal = format!("{name}\"");
        assert!(callers.iter().any(|(_, text)| text.contains(&literal)), "no test compares snapshots/{name}; remove it");
    }
}
