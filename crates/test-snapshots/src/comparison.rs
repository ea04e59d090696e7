//! Compares one committed file with the text that the code renders.

use crate::mode::Mode;
use similar::TextDiff;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A committed file and the text that belongs into it.
pub(crate) struct Comparison<'a> {
    pub(crate) root: &'a Path,
    /// Relative to `root`.
    pub(crate) path: &'a str,
    /// The package under test, if known; it narrows the command that accepts.
    pub(crate) package: Option<&'a str>,
    pub(crate) actual: &'a str,
}

impl Comparison<'_> {
    pub(crate) fn run(&self, mode: Mode) -> Result<(), Mismatch> {
        let committed = self.read();
        if committed.as_deref() == Some(self.actual) {
            return Ok(());
        }
        match mode {
            Mode::Accept => {
                self.write();
                Ok(())
            }
            Mode::Compare | Mode::Refuse => Err(self.mismatch(committed.as_deref(), mode)),
        }
    }

    fn file(&self) -> PathBuf {
        self.root.join(self.path)
    }

    fn read(&self) -> Option<String> {
        match std::fs::read_to_string(self.file()) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => panic!("cannot read {}: {error}", self.path),
        }
    }

    fn write(&self) {
        let file = self.file();
        let folder = file.parent().unwrap_or(self.root);
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, self.actual));
        written.unwrap_or_else(|error| panic!("cannot write {}: {error}", self.path));
    }

    fn mismatch(&self, committed: Option<&str>, mode: Mode) -> Mismatch {
        let state = if committed.is_some() { "differs from the code" } else { "is missing" };
        Mismatch {
            summary: format!("{} {state}", self.path),
            diff: diff(committed.unwrap_or_default(), self.actual),
            command: self.command(),
            refused: mode == Mode::Refuse,
        }
    }

    fn command(&self) -> String {
        let narrowed = self.package.map_or_else(String::new, |package| format!(" -p {package}"));
        format!("cargo xtask snapshots --accept{narrowed}")
    }
}

/// A unified diff; after the numbers of each hunk stands the last line before it that begins with a
/// letter or digit.
fn diff(committed: &str, actual: &str) -> String {
    let lines: Vec<&str> = committed.lines().collect();
    let diff = TextDiff::from_lines(committed, actual);
    let mut text = String::from("--- committed\n+++ rendered by the code\n");
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        let start = hunk.ops().first().map_or(0, |op| op.old_range().start);
        let (numbers, changes) = (hunk.header().to_string(), hunk.to_string());
        let title = lines[..start].iter().rfind(|line| line.starts_with(char::is_alphanumeric));
        text += &numbers;
        text += &title.map_or_else(String::new, |title| format!(" {title}"));
        text += changes.strip_prefix(&numbers).unwrap_or(&changes);
    }
    text
}

/// A committed file that differs from the code.
#[derive(Debug)]
pub(crate) struct Mismatch {
    summary: String,
    diff: String,
    command: String,
    refused: bool,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n\n{}", self.summary, self.diff)?;
        if self.refused {
            writeln!(f, "the variable CI is set, so this run accepts nothing")?;
        }
        write!(f, "If the change is intended, accept it: {}", self.command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const PATH: &str = "snapshots/metrics.txt";

    fn run(root: &Path, mode: Mode, actual: &str) -> Result<(), String> {
        let comparison = Comparison { root, path: PATH, package: Some("steadfast-server"), actual };
        comparison.run(mode).map_err(|mismatch| mismatch.to_string())
    }

    fn folder(text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("snapshots")).unwrap();
        fs::write(folder.path().join(PATH), text).unwrap();
        folder
    }

    #[test]
    fn equal_text_passes() {
        let folder = folder("a\nb\n");
        assert_eq!(run(folder.path(), Mode::Compare, "a\nb\n"), Ok(()));
        assert_eq!(run(folder.path(), Mode::Refuse, "a\nb\n"), Ok(()));
    }

    #[test]
    fn mismatch_shows_diff_and_command() {
        let folder = folder("a\nb\nc\n");
        let message = run(folder.path(), Mode::Compare, "a\nB\nc\n").unwrap_err();
        assert_eq!(
            message,
            "snapshots/metrics.txt differs from the code\n\n\
             --- committed\n+++ rendered by the code\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n\n\
             If the change is intended, accept it: cargo xtask snapshots --accept -p steadfast-server"
        );
        assert_eq!(fs::read_to_string(folder.path().join(PATH)).unwrap(), "a\nb\nc\n");
    }

    #[test]
    fn hunk_names_its_block() {
        let committed = "first\n  a\nsecond\n  b\n  c\n  d\n  e\n";
        let message = run(folder(committed).path(), Mode::Compare, &committed.replace("  e", "  E")).unwrap_err();
        assert!(message.contains("\n@@ -4,4 +4,4 @@ second\n   b\n   c\n   d\n-  e\n+  E\n"), "{message}");
    }

    #[test]
    fn missing_file_fails() {
        let folder = tempfile::tempdir().unwrap();
        let message = run(folder.path(), Mode::Compare, "a\n").unwrap_err();
        assert!(message.starts_with("snapshots/metrics.txt is missing\n"), "{message}");
        assert!(message.contains("\n+a\n"), "{message}");
    }

    #[test]
    fn missing_final_newline_is_mismatch() {
        let message = run(folder("a").path(), Mode::Compare, "a\n").unwrap_err();
        assert!(message.contains("No newline at end of file"), "{message}");
    }

    #[test]
    fn acceptance_writes_text() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(folder.path(), Mode::Accept, "a\n"), Ok(()));
        assert_eq!(run(folder.path(), Mode::Accept, "b\n"), Ok(()));
        assert_eq!(fs::read_to_string(folder.path().join(PATH)).unwrap(), "b\n");
    }

    #[test]
    fn refused_acceptance_writes_nothing() {
        let folder = folder("a\n");
        let message = run(folder.path(), Mode::Refuse, "b\n").unwrap_err();
        assert!(message.contains("CI is set"), "{message}");
        assert_eq!(fs::read_to_string(folder.path().join(PATH)).unwrap(), "a\n");
    }
}
