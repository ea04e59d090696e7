//! Compares text with committed snapshots.
//!
//! A test renders an interface as text and passes it to [`assert_snapshot`].
//! A mismatch panics with a unified diff and the command that accepts the new text.
//! That command runs only tests with `snapshot` in their path, so each caller lives in a file of
//! that name.

pub mod bytes;
mod comparison;
mod mode;

use comparison::Comparison;
use mode::Mode;
use std::path::Path;

/// Compares `actual` with the committed file `snapshots/<name>`.
///
/// # Panics
/// If the texts differ or the file is missing, unless the environment accepts the new text.
#[track_caller]
pub fn assert_snapshot(name: &str, actual: &str) {
    assert_file(&format!("snapshots/{name}"), actual);
}

/// Compares `actual` with a committed file; `path` starts at the root of the workspace.
///
/// # Panics
/// As [`assert_snapshot`].
#[track_caller]
pub fn assert_file(path: &str, actual: &str) {
    let package = std::env::var("CARGO_PKG_NAME").ok();
    if let Err(mismatch) = compare(path, package.as_deref(), actual, Mode::of_environment()) {
        panic!("{mismatch}");
    }
}

/// Compares `actual` with a committed file outside of a test; `path` starts at the root of the
/// workspace.
///
/// # Errors
/// The diff and the command that accepts `actual`.
pub fn compare_file(path: &str, actual: &str) -> Result<(), String> {
    compare(path, None, actual, Mode::Compare)
}

fn compare(path: &str, package: Option<&str>, actual: &str, mode: Mode) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let comparison = Comparison { root: &root, path, package, actual };
    comparison.run(mode).map_err(|mismatch| mismatch.to_string())
}
