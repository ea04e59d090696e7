//! Compares the explanation of each wrong definition with the text beside it.

use crate::wrong::said;
use std::fs;
use std::path::{Path, PathBuf};
use steadfast_test_snapshots::assert_file;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrong");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")).collect();
    paths.sort();
    paths
}

#[test]
fn explanations_match_snapshots() {
    let files = files();
    assert!(files.len() >= 25, "only {} wrong definitions", files.len());
    for path in files {
        let name = path.file_stem().unwrap().to_string_lossy();
        let explained = said(&format!("{name}.yaml"), &fs::read_to_string(&path).unwrap());
        assert_file(&format!("crates/definitions/tests/wrong/{name}.txt"), &explained);
    }
}
