//! Compares text with committed snapshots.
//!
//! A test renders an interface as text and passes it to [`assert_snapshot`].
//! A mismatch panics with a unified diff and the command that accepts the new text.
//! That command runs only tests with `snapshot` in their path, so each caller lives in a file of that name.

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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let package = std::env::var("CARGO_PKG_NAME").ok();
    let comparison = Comparison { root: &root, path, package: package.as_deref(), actual };
    if let Err(mismatch) = comparison.run(Mode::of_environment()) {
        panic!("{mismatch}");
    }
}
