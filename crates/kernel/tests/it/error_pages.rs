//! Every code that users see has its page under `docs/errors/`, and every page has its code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use steadfast_kernel::code;

/// What every page has, in this order.
const SECTIONS: [&str; 3] = ["## Meaning", "## Cause", "## What to try"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors")
}

fn read(name: &str) -> String {
    let path = folder().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The codes that have a page.
fn pages() -> BTreeSet<String> {
    let files = std::fs::read_dir(folder()).expect("docs/errors can be read");
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    names
        .filter_map(|name| name.strip_suffix(".md").map(str::to_string))
        .filter(|name| name != "README")
        .collect()
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let codes: BTreeSet<String> = code::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(pages(), codes);
    assert_eq!(code::ALL.len(), codes.len(), "a code is given twice");
}

#[test]
fn every_page_has_a_title_and_says_meaning_cause_and_what_to_try() {
    for code in code::ALL {
        let page = read(&format!("{code}.md"));
        let (title, mut rest) = page.split_once('\n').expect("a title");
        assert!(title.strip_prefix(&format!("# {code} ")).is_some_and(|title| !title.is_empty()), "{title}");
        for section in SECTIONS {
            let (before, after) = rest.split_once(&format!("\n{section}\n")).unwrap_or_else(|| panic!("{code} has no {section}"));
            assert!(section == SECTIONS[0] || !before.trim().is_empty(), "{code} has nothing before {section}");
            rest = after;
        }
        assert!(!rest.trim().is_empty() && !rest.contains("\n## "), "{code} ends with {}", SECTIONS[2]);
    }
}

#[test]
fn the_index_lists_every_page_with_its_title() {
    let index = read("README.md");
    let rows: Vec<&str> = index.lines().filter(|line| line.starts_with("| [SF")).collect();
    let expected = code::ALL.iter().map(|code| {
        let page = read(&format!("{code}.md"));
        let title = page
            .lines()
            .next()
            .and_then(|line| line.strip_prefix(&format!("# {code} ")))
            .expect("a title")
            .to_string();
        format!("| [{code}]({code}.md) | {title} |")
    });
    assert_eq!(rows, expected.collect::<Vec<_>>());
}
