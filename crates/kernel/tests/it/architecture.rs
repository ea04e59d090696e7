//! What the code must not reach for. Lints catch what they can see; this reads the text, so that nothing gets in under another name.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Rust file below a folder, without those of other tests.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

/// Code without comments, so that a page may speak of what the code must not do.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
}

#[test]
fn the_kernel_reaches_no_clock_chance_io_thread_or_hash_order() {
    let forbidden = [
        "SystemTime",
        "Instant",
        "Timestamp::now",
        "Zoned::now",
        "tokio",
        "async",
        "HashMap",
        "HashSet",
        "RandomState",
        "std::fs",
        "std::net",
        "std::thread",
        "std::env",
        "std::process",
        "SysRng",
        "rand::rng(",
        "from_entropy",
        "getrandom",
    ];
    for (path, text) in sources(&root().join("crates/kernel/src")) {
        for (line, code) in code(&text) {
            if let Some(word) = forbidden.iter().find(|word| code.contains(**word)) {
                panic!("{}:{line} reaches for {word}", path.display());
            }
        }
    }
}

#[test]
fn the_kernel_depends_on_nothing_that_acts() {
    let manifest = fs::read_to_string(root().join("crates/kernel/Cargo.toml")).unwrap();
    let (_, dependencies) = manifest.split_once("[dependencies]").unwrap();
    let (dependencies, _) = dependencies.split_once("\n[").unwrap();
    let names: Vec<_> = dependencies
        .lines()
        .filter_map(|line| line.split(['.', ' ']).next())
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(names, ["bytes", "hkdf", "jiff", "prost", "rand", "serde", "serde_json", "sha2", "thiserror"], "a new one needs a reason");
}

/// The dependencies of a crate's product code, as its manifest lists them.
fn dependencies(folder: &Path) -> String {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let dependencies = manifest.split_once("[dependencies]").map_or("", |(_, rest)| rest);
    dependencies.split("\n[").next().unwrap_or_default().to_owned()
}

#[test]
fn product_excludes_storage_testkit() {
    let folders: Vec<_> = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let users: Vec<_> = folders.iter().filter(|folder| dependencies(folder).contains("steadfast-storage-testkit")).collect();
    assert!(users.is_empty(), "steadfast-storage-testkit must be a dev-dependency of {users:?}");
}

#[test]
fn arrows_between_crates_point_one_way() {
    let uses = |package: &str| {
        let dependencies = dependencies(&root().join("crates").join(package));
        move |other: &str| dependencies.lines().any(|line| line.starts_with(other))
    };
    for (package, not) in [
        ("kernel", vec!["steadfast"]),
        ("store", vec!["steadfast-runtime", "steadfast-store-embedded", "steadfast-store-redis", "steadfast.", "rusqlite", "redis"]),
        ("store-embedded", vec!["steadfast-runtime", "steadfast."]),
        ("store-redis", vec!["steadfast-runtime", "steadfast-store-embedded", "steadfast-test-servers", "steadfast."]),
        ("runtime", vec!["steadfast-store-embedded", "steadfast-store-redis", "steadfast.", "rusqlite", "redis"]),
    ] {
        let uses = uses(package);
        for other in not {
            assert!(!uses(other), "{package} must not depend on {other}");
        }
    }
}

#[test]
fn every_select_takes_its_branches_in_order() {
    let mut seen = 0;
    let is_wrong_on_purpose = |path: &Path| path.parent().is_some_and(|folder| folder.ends_with("tests/refused"));
    for (path, text) in sources(&root().join("crates")).into_iter().filter(|(path, _)| !is_wrong_on_purpose(path)) {
        let lines: Vec<_> = code(&text).collect();
        for (index, (line, code)) in lines.iter().enumerate() {
            if code.contains("select!") && !code.contains('"') {
                seen += 1;
                let next = lines.get(index + 1).map_or("", |(_, code)| code.trim());
                assert!(next == "biased;", "{}:{line}: a select without `biased;` takes another branch every time", path.display());
            }
        }
    }
    assert!(seen > 2, "this looks for the right thing");
}
