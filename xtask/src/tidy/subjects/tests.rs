//! Tests the check on small workspaces, and once on this one.

use super::problems;

const TEST: &str = "crates/sdk/tests/it/retention.rs";
const SUBJECT: &str = "crates/runtime/src/retention.rs";
const NAMES_SUBJECT: &str = "//! Tests.\n//!\n//! Subject: `crates/runtime/src/retention.rs`.\n";
const NAMES_TEST: &str = "//! Deletes.\n//!\n//! Tested by `crates/sdk/tests/it/retention.rs`.\n";

/// A workspace of two crates with these files.
fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let manifests = [("crates/sdk/Cargo.toml", ""), ("crates/runtime/Cargo.toml", ""), ("Cargo.toml", "")];
    for (path, text) in manifests.iter().chain(files) {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    root
}

fn found(files: &[(&str, &str)]) -> Vec<String> {
    problems(workspace(files).path())
}

#[test]
fn mutual_link_is_accepted() {
    assert_eq!(found(&[(TEST, NAMES_SUBJECT), (SUBJECT, NAMES_TEST)]), [""; 0]);
}

#[test]
fn several_links_are_accepted() {
    let other = "crates/runtime/src/shard/sweep.rs";
    let both = format!("{NAMES_SUBJECT}//! Subject: `{other}`.\n");
    assert_eq!(found(&[(TEST, &both), (SUBJECT, NAMES_TEST), (other, NAMES_TEST)]), [""; 0]);
}

#[test]
fn unanswered_subject_is_reported() {
    let expected = format!("{SUBJECT}: add `//! Tested by `{TEST}`.` to the header, because `{TEST}` has `//! Subject: `{SUBJECT}`.`");
    assert_eq!(found(&[(TEST, NAMES_SUBJECT), (SUBJECT, "//! Deletes.\n")]), [expected]);
}

#[test]
fn unanswered_test_is_reported() {
    let expected = format!("{TEST}: add `//! Subject: `{SUBJECT}`.` to the header, because `{SUBJECT}` has `//! Tested by `{TEST}`.`");
    assert_eq!(found(&[(TEST, "//! Tests.\n"), (SUBJECT, NAMES_TEST)]), [expected]);
}

#[test]
fn missing_subject_is_reported() {
    let expected = format!("{TEST}: `{SUBJECT}` does not exist; write the new path, or remove `//! Subject: `{SUBJECT}`.`");
    assert_eq!(found(&[(TEST, NAMES_SUBJECT)]), [expected]);
}

#[test]
fn missing_test_is_reported() {
    let expected = format!("{SUBJECT}: `{TEST}` does not exist; write the new path, or remove `//! Tested by `{TEST}`.`");
    assert_eq!(found(&[(SUBJECT, NAMES_TEST)]), [expected]);
}

#[test]
fn moved_subject_is_suggested() {
    let moved = "crates/runtime/src/purge.rs";
    let expected = format!("{TEST}: `{SUBJECT}` does not exist; `{moved}` names this file, so write `//! Subject: `{moved}`.`");
    assert_eq!(found(&[(TEST, NAMES_SUBJECT), (moved, NAMES_TEST)]), [expected]);
}

#[test]
fn linked_subject_is_no_suggestion() {
    let (stays, moved) = ("crates/runtime/src/sweep/mod.rs", "crates/runtime/src/delete/mod.rs");
    let names_both = format!("//! Subject: `{stays}`.\n//! Subject: `crates/runtime/src/purge/mod.rs`.\n");
    let found = found(&[(TEST, &names_both), (stays, NAMES_TEST), (moved, NAMES_TEST)]);
    assert_eq!(found.len(), 1);
    assert!(found[0].ends_with(&format!("write `//! Subject: `{moved}`.`")), "{found:?}");
}

#[test]
fn renamed_crate_keeps_pairs_apart() {
    let other = "crates/runtime/src/shard/sweep.rs";
    let both = format!("{NAMES_SUBJECT}//! Subject: `{other}`.\n");
    let found = found(&[(TEST, &both), ("crates/shard/src/retention.rs", NAMES_TEST), ("crates/shard/src/shard/sweep.rs", NAMES_TEST)]);
    assert_eq!(found.len(), 2);
    assert!(found[0].ends_with("write `//! Subject: `crates/shard/src/retention.rs`.`"), "{found:?}");
    assert!(found[1].ends_with("write `//! Subject: `crates/shard/src/shard/sweep.rs`.`"), "{found:?}");
}

#[test]
fn subject_in_same_crate_is_reported() {
    let subject = "crates/sdk/src/engine.rs";
    let names_subject = format!("//! Subject: `{subject}`.\n");
    let problems = found(&[(TEST, &names_subject), (subject, NAMES_TEST)]);
    assert_eq!(problems[1], format!("{TEST}: `{subject}` is in the same crate; remove `//! Subject: `{subject}`.`"));
}

#[test]
fn malformed_line_is_reported() {
    for line in ["//! Subject: retention.rs", "//! Tested by `a.rs`, `b.rs`.", "//! Subject: `a.rs`"] {
        let expected = format!("{TEST}: `{line}` must be `//! Subject: `PATH`.` or `//! Tested by `PATH`.`");
        assert_eq!(found(&[(TEST, line)]), [expected]);
    }
}

#[test]
fn target_folder_is_skipped() {
    assert_eq!(found(&[("target/package/a.rs", NAMES_SUBJECT), (".git/a.rs", NAMES_TEST)]), [""; 0]);
}

#[test]
fn unreadable_root_is_reported() {
    let root = workspace(&[]).path().join("absent");
    assert!(problems(&root)[0].starts_with("cannot read the Rust files under "));
}

/// The workspace of this crate has no defect.
#[test]
fn committed_links_have_no_problem() {
    assert_eq!(problems(&crate::root()), [""; 0]);
}
