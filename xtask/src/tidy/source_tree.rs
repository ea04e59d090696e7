//! Reads the files of the workspace that are tracked or would be.

use super::rust_file::RustFile;
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

/// A file of the workspace and the row of the table that it counts for.
pub(crate) struct SourceText {
    /// From the root of the workspace, with `/`.
    pub(crate) path: String,
    /// A crate by its folder, `xtask`, `examples`, or `docs` for everything else.
    pub(crate) home: String,
    pub(crate) text: String,
}

/// All texts that are measured, by path.
#[derive(Default)]
pub(crate) struct SourceTree {
    texts: BTreeMap<String, SourceText>,
    /// Files of every sort, for links that lead to them.
    paths: BTreeSet<String>,
}

impl SourceTree {
    /// Reads tracked files, and untracked ones that git does not ignore, as the work tree has them.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut texts = Self::default();
        for path in listed(root)? {
            if !root.join(&path).is_file() {
                continue; // deleted, and the deletion is not committed yet
            }
            if ["rs", "md", "toml"].contains(&extension(&path)) {
                let text = std::fs::read_to_string(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
                texts.texts.insert(path.clone(), SourceText { home: home(&path), path: path.clone(), text });
            }
            texts.paths.insert(path);
        }
        Ok(texts)
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let text = |(path, text): &(&str, &str)| SourceText { home: home(path), path: (*path).into(), text: (*text).into() };
        let paths = files.iter().map(|file| file.0.to_owned()).collect();
        Self { texts: files.iter().map(|file| (file.0.to_owned(), text(file))).collect(), paths }
    }

    pub(crate) fn get(&self, path: &str) -> Option<&SourceText> {
        self.texts.get(path)
    }

    /// Whether a file or a folder has this path.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.paths.contains(path)
            || self.paths.range(folder.clone()..).next().is_some_and(|next| next.starts_with(&folder))
    }

    pub(crate) fn with_extension<'a>(&'a self, wanted: &'a str) -> impl Iterator<Item = &'a SourceText> {
        self.texts.values().filter(move |text| extension(&text.path) == wanted)
    }

    /// Parses every Rust file, on all cores.
    pub(crate) fn parse_rust(&self) -> Vec<RustFile<'_>> {
        let queue = Mutex::new(self.with_extension("rs"));
        let next = || queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
        let work = || std::iter::from_fn(next).map(RustFile::parse).collect::<Vec<_>>();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut files: Vec<RustFile<'_>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        files.sort_by_key(|file| &file.source.path);
        files
    }
}

/// The paths that git lists: tracked, and untracked but not ignored.
fn listed(root: &Path) -> Result<Vec<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().context("git cannot be started")?;
    ensure!(output.status.success(), "git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect())
}

fn extension(path: &str) -> &str {
    Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

fn home(path: &str) -> String {
    let mut parts = path.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("crates"), Some(name), Some(_)) => name.to_owned(),
        (Some(folder @ ("xtask" | "examples")), Some(_), _) => folder.to_owned(),
        _ => "docs".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_decides_home() {
        let homes = ["crates/kernel/src/lib.rs", "xtask/src/main.rs", "examples/a/main.rs", "README.md", "docs/guide/http.md"].map(home);
        assert_eq!(homes, ["kernel", "xtask", "examples", "docs", "docs"]);
    }

    #[test]
    fn untracked_file_counts_unless_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| Command::new("git").arg("-C").arg(folder.path()).args(arguments).output().unwrap();
        git(&["init", "--quiet"]);
        for (name, text) in [(".gitignore", "/ignored.rs\n"), ("ignored.rs", ""), ("new.rs", ""), ("gone.rs", "")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        git(&["add", "gone.rs"]);
        std::fs::remove_file(folder.path().join("gone.rs")).unwrap();
        let texts = SourceTree::read(folder.path()).unwrap();
        assert_eq!(texts.with_extension("rs").map(|text| &text.path).collect::<Vec<_>>(), ["new.rs"]);
    }
}
