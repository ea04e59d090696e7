//! Compares error codes, their statuses and their titles with the committed snapshot.

use super::{Problem, TITLES};
use steadfast_kernel::code;
use steadfast_test_snapshots::assert_snapshot;

#[test]
fn error_codes_match_snapshot() {
    let line = |code: &&'static str| format!("{code} {} {}\n", Problem::new(code, "").status.as_u16(), TITLES[code]);
    let mut lines: Vec<String> = code::ALL.iter().map(line).collect();
    lines.sort();
    assert_snapshot("error-codes.txt", &lines.concat());
}
