//! Compares the compiler in use with the one that the checks expect.

use crate::root;
use anyhow::{Context, Result};
use std::process::Command;

/// `rust-version` of the workspace: cargo refuses older compilers, and this module reports newer
/// ones.
const EXPECTED: &str = env!("CARGO_PKG_RUST_VERSION");

/// Prints a note if the compiler is another one than expected.
pub(crate) fn report() -> Result<()> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&rustc).arg("--version").current_dir(root()).output();
    let output = output.with_context(|| format!("{} --version failed", rustc.display()))?;
    if let Some(note) = note(EXPECTED, &String::from_utf8_lossy(&output.stdout)) {
        eprintln!("{note}");
    }
    Ok(())
}

fn note(expected: &str, version_line: &str) -> Option<String> {
    let version = version_line.split_whitespace().nth(1).unwrap_or("of an unknown version");
    if version == expected || version.starts_with(&format!("{expected}.")) {
        return None;
    }
    Some(format!(
        "note: the compiler is rustc {version}; the checks expect {expected}, and lints of other versions differ. \
         To use it: rustup toolchain install {expected} && rustup override set {expected}"
    ))
}

#[cfg(test)]
mod tests {
    use super::note;

    #[test]
    fn patch_release_of_expected_is_accepted() {
        assert_eq!(note("1.95", "rustc 1.95.0 (59807616e 2026-04-14)\n"), None);
        assert_eq!(note("1.95", "rustc 1.95 (built from source)"), None);
    }

    #[test]
    fn other_version_is_named() {
        for other in ["1.96.0", "1.9.5", "1.950.0", "1.97.0-nightly"] {
            let note = note("1.95", &format!("rustc {other} (hash date)")).unwrap();
            assert!(note.contains(&format!("rustc {other};")) && note.contains("expect 1.95,"), "{note}");
        }
    }
}
