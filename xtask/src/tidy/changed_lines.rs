//! Finds the lines that changed since the budgets were last set.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use super::tally::Offender;

/// Changed lines by path. Offenders among them are the likely cause of a worse figure.
#[derive(Default)]
pub(crate) struct ChangedLines(BTreeMap<String, Vec<Range<usize>>>);

impl ChangedLines {
    /// Compares the work tree with the commit that last touched `tidy.toml`. Without a repository
    /// nothing counts as changed.
    pub(crate) fn since_budgets(root: &Path) -> Self {
        let base = git(root, &["log", "-1", "--format=%H", "--", "tidy.toml"]);
        let base = if base.trim().is_empty() { "HEAD" } else { base.trim() };
        let mut changes = Self::parse(&git(root, &["diff", "--unified=0", "--no-color", "--no-ext-diff", "--dst-prefix=b/", base]));
        for path in git(root, &["ls-files", "-z", "--others", "--exclude-standard"]).split('\0') {
            changes.0.entry(path.to_owned()).or_default().push(0..usize::MAX);
        }
        changes
    }

    /// Reads a diff without context.
    pub(crate) fn parse(diff: &str) -> Self {
        let mut changes = Self::default();
        let mut path = String::new();
        for line in diff.lines() {
            if let Some(name) = line.strip_prefix("+++ b/") {
                path = name.to_owned();
            } else if let Some(range) = line.strip_prefix("@@ ").and_then(new_lines) {
                changes.0.entry(path.clone()).or_default().push(range);
            }
        }
        changes
    }

    pub(crate) fn contain(&self, place: &Offender) -> bool {
        let contains = |path: &str, line: usize| self.0.get(path).is_some_and(|ranges| ranges.iter().any(|range| range.contains(&line)));
        contains(&place.path, place.line) || place.others.iter().any(|(path, line)| contains(path, *line))
    }
}

/// The output of git, empty when it fails.
fn git(root: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// The lines that `-1,2 +3,4 @@` adds: 3 to 6.
fn new_lines(header: &str) -> Option<Range<usize>> {
    let added = header.split(' ').nth(1)?.strip_prefix('+')?;
    let (start, count) = added.split_once(',').unwrap_or((added, "1"));
    let start: usize = start.parse().ok()?;
    Some(start..start + count.parse::<usize>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_lines_of_place_count() {
        let changes = ChangedLines::parse("+++ b/x.rs\n@@ -1 +3 @@\n");
        let mut place = Offender::new("y.rs", 3, "");
        assert!(!changes.contain(&place));
        place.others.push(("x.rs".to_owned(), 3));
        assert!(changes.contain(&place));
    }

    #[test]
    fn hunks_give_changed_lines() {
        let changes = ChangedLines::parse(
            "--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +3,2 @@ fn a()\n+b\n@@ -9 +9 @@\n--- a/y.rs\n+++ b/y.rs\n@@ -4,2 +3,0 @@\n",
        );
        let changed = |path: &str| (1..12).filter(|line| changes.contain(&Offender::new(path, *line, ""))).collect::<Vec<_>>();
        assert_eq!([changed("x.rs"), changed("y.rs"), changed("z.rs")], [vec![3, 4, 9], vec![], vec![]]);
    }
}
