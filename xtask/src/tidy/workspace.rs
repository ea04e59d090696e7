//! Holds the parsed workspace that measures look at.

use super::rust_file::RustFile;
use super::source_tree::{SourceText, SourceTree};

pub(crate) struct Workspace<'a> {
    pub(crate) texts: &'a SourceTree,
    pub(crate) files: Vec<RustFile<'a>>,
    /// Crates that users run, by folder; the other rows are tools, examples and pages.
    pub(crate) product: Vec<String>,
    /// Paths of modules that only tests compile, without `.rs`.
    test_modules: Vec<String>,
}

impl<'a> Workspace<'a> {
    pub(crate) fn new(texts: &'a SourceTree, product: Vec<String>) -> Self {
        let files = texts.parse_rust();
        let test_modules = files.iter().flat_map(|file| file.test_modules.iter().map(|name| file.module_path(name))).collect();
        Self { texts, files, product, test_modules }
    }

    /// Everything that counts for one row of the table, in order.
    pub(crate) fn homes(&self) -> Vec<String> {
        let mut homes: Vec<String> = self.files.iter().map(|file| file.source.home.clone()).collect();
        homes.push("docs".to_owned());
        homes.sort();
        homes.dedup();
        homes
    }

    pub(crate) fn rust<'w>(&'w self, home: &'w str) -> impl Iterator<Item = &'w RustFile<'a>> {
        self.files.iter().filter(move |file| file.source.home == home)
    }

    /// Files that are compiled into the library or the binary of a crate.
    pub(crate) fn code<'w>(&'w self, home: &'w str) -> impl Iterator<Item = &'w RustFile<'a>> {
        self.rust(home).filter(|file| file.below_src().is_some() && !self.is_test_module(&file.source.path))
    }

    /// Every file that a build with tests compiles, without the cases of compile tests.
    pub(crate) fn compiled<'w>(&'w self, home: &'w str) -> impl Iterator<Item = &'w RustFile<'a>> {
        self.rust(home).filter(|file| !self.is_test_case(&file.source.path))
    }

    /// Whether a file lies in a folder of `tests` that has no `main.rs`.
    fn is_test_case(&self, path: &str) -> bool {
        let Some((crate_root, below)) = path.split_once("/tests/") else { return false };
        below
            .split_once('/')
            .is_some_and(|(folder, _)| !self.texts.exists(&format!("{crate_root}/tests/{folder}/main.rs")))
    }

    pub(crate) fn markdown<'w>(&'w self, home: &'w str) -> impl Iterator<Item = &'a SourceText> + use<'w, 'a> {
        self.texts.with_extension("md").filter(move |text| text.home == home)
    }

    fn is_test_module(&self, path: &str) -> bool {
        let is_below = |rest: &str| rest == ".rs" || rest.starts_with('/');
        self.test_modules.iter().any(|module| path.strip_prefix(module.as_str()).is_some_and(is_below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_modules_and_cases_are_apart() {
        let texts = SourceTree::of(&[
            ("crates/a/src/lib.rs", "mod b; #[cfg(test)] mod c;"),
            ("crates/a/src/b.rs", "#[cfg(test)] mod tests;"),
            ("crates/a/src/b/tests.rs", ""),
            ("crates/a/src/c/mod.rs", ""),
            ("crates/a/src/c2.rs", ""),
            ("crates/a/tests/it/main.rs", ""),
            ("crates/a/tests/it/b/mod.rs", ""),
            ("crates/a/tests/refused/case.rs", ""),
            ("crates/a/tests/alone.rs", ""),
        ]);
        let workspace = Workspace::new(&texts, vec!["a".into()]);
        let code: Vec<_> = workspace.code("a").filter_map(|file| file.below_src()).collect();
        assert_eq!(code, ["b.rs", "c2.rs", "lib.rs"]);
        assert_eq!(workspace.compiled("a").count(), workspace.rust("a").count() - 1);
    }
}
