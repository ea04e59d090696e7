//! Compares the text of every script with the committed snapshot.

use super::{ALL, Lua};
use std::collections::BTreeMap;
use std::path::Path;
use steadfast_test_snapshots::assert_snapshot;

const COMMON: &str = include_str!("../lua/common.lua");

#[test]
fn scripts_match_snapshot() {
    let files = files();
    let mut blocks: Vec<String> = ALL.iter().map(|script| block(&files, script)).collect();
    blocks.sort();
    assert_eq!(blocks.len(), files.len() - 1, "each file but common.lua is a script");
    assert_snapshot("redis-scripts.txt", &(titled("common", COMMON) + &blocks.concat()));
}

/// Texts of the files by name.
fn files() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lua");
    let read = |path: &Path| (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap());
    std::fs::read_dir(folder).unwrap().map(|entry| read(&entry.unwrap().path())).collect()
}

/// A script below the name of its file.
fn block(files: &BTreeMap<String, String>, script: &Lua) -> String {
    let own = script.text.strip_prefix(COMMON).unwrap();
    let (name, _) = files.iter().find(|(_, text)| *text == own).unwrap();
    titled(name, own)
}

/// Code without comments: their wording may change.
fn titled(name: &str, text: &str) -> String {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    format!("{name}\n{}\n", code.map(|line| format!("  {line}\n")).collect::<String>())
}
