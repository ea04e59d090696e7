//! Reads how often each line ran.

use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How often the lines that hold executable code ran, by file from the root of the workspace.
pub(super) type LineHits = BTreeMap<String, BTreeMap<usize, u64>>;

/// The report of `cov`: every source file with line numbers and counts.
pub(super) fn source_report(reader: &Path, profiles: &[PathBuf], executables: &[PathBuf]) -> Result<String> {
    ensure!(!profiles.is_empty(), "no test left counters; select a crate that has tests");
    let mut cov = Command::new(reader);
    cov.arg("show");
    for profile in profiles {
        cov.arg("--instr-profile").arg(profile);
    }
    for executable in executables {
        cov.arg("--object").arg(executable);
    }
    let output = cov.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{} cannot read the counters ({})", reader.display(), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Lines of files below `root`; a file begins with its path, and a line is `NUMBER|HITS|SOURCE`.
pub(super) fn parse_report(report: &str, root: &Path) -> LineHits {
    let mut files = LineHits::new();
    let mut file = None;
    for line in report.lines() {
        if line.starts_with('/') {
            file = Path::new(line).strip_prefix(root).ok().and_then(Path::to_str).map(str::to_owned);
        } else if let (Some(file), Some((number, hits))) = (&file, line_hits(line)) {
            files.entry(file.clone()).or_default().insert(number, hits);
        }
    }
    files
}

/// The number and the count of a line that has one.
fn line_hits(line: &str) -> Option<(usize, u64)> {
    let mut cells = line.splitn(3, '|').map(str::trim);
    Some((cells.next()?.parse().ok()?, cells.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncounted_lines_are_dropped() {
        let report = "\
/w/crates/a/src/lib.rs
    1|       |//! A | 7 | table.
    2|      3|fn a() {
    3|      0|    b(|x| x | 1);

/deps/c/src/lib.rs
    1|      9|fn c() {}
";
        let hits = parse_report(report, Path::new("/w"));
        assert_eq!(hits, LineHits::from([("crates/a/src/lib.rs".to_owned(), BTreeMap::from([(2, 3), (3, 0)]))]));
    }
}
