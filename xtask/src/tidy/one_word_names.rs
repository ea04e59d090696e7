//! Counts names of one word: files, types and functions of code that is no test.

use super::rust_items::{ItemKind, RustItem};
use super::tally::{Offender, Tally};
use super::workspace::Workspace;

/// File names without `_`. Names that Rust dictates are not counted.
pub(crate) fn file_names(workspace: &Workspace<'_>, home: &str) -> Tally {
    let mut tally = Tally::default();
    for file in workspace.code(home) {
        let path = &file.source.path;
        let stem = path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        if ["mod", "lib", "main"].contains(&stem) {
            continue;
        }
        tally.of += 1;
        if !stem.contains('_') {
            tally.offenders.push(Offender::new(path, 1, format!("the file name `{stem}` is one word")));
        }
    }
    tally
}

pub(crate) fn type_names(workspace: &Workspace<'_>, home: &str) -> Tally {
    items(workspace, home, |item| item.is_type(), |name| humps(name) == 1)
}

/// Functions and methods, but for those whose names a trait dictates.
pub(crate) fn function_names(workspace: &Workspace<'_>, home: &str) -> Tally {
    items(workspace, home, |item| item.kind == ItemKind::Function, |name| !name.trim_matches('_').contains('_'))
}

fn items(workspace: &Workspace<'_>, home: &str, wanted: impl Fn(&RustItem<'_>) -> bool, is_one_word: impl Fn(&str) -> bool) -> Tally {
    let mut tally = Tally::default();
    for file in workspace.code(home) {
        for item in file.items.iter().filter(|item| wanted(item)) {
            tally.of += 1;
            if is_one_word(item.name) {
                tally
                    .offenders
                    .push(Offender::new(&file.source.path, item.line, format!("the name `{}` is one word", item.name)));
            }
        }
    }
    tally
}

/// The words of a CamelCase name; neighbouring capitals are one word.
fn humps(name: &str) -> usize {
    let letters: Vec<char> = name.chars().collect();
    let begins = |at: usize| {
        let follows_small = at == 0 || !letters[at - 1].is_uppercase();
        letters[at].is_uppercase() && (follows_small || letters.get(at + 1).is_some_and(|next| next.is_lowercase()))
    };
    (0..letters.len()).filter(|at| begins(*at)).count()
}

#[cfg(test)]
mod tests {
    use super::super::source_tree::SourceTree;
    use super::*;

    fn counted(measure: impl Fn(&Workspace<'_>, &str) -> Tally, files: &[(&str, &str)]) -> (usize, usize) {
        let texts = SourceTree::of(files);
        let tally = measure(&Workspace::new(&texts, Vec::new()), "a");
        (tally.offenders.len(), tally.of)
    }

    #[test]
    fn dictated_file_names_are_skipped() {
        let paths = ["lib.rs", "x/mod.rs", "main.rs", "run.rs", "x/run_list.rs"].map(|path| format!("crates/a/src/{path}"));
        let files: Vec<_> = paths.iter().map(|path| (path.as_str(), "")).collect();
        assert_eq!(counted(file_names, &files), (1, 2));
    }

    #[test]
    fn capitals_together_are_one_word() {
        assert_eq!(["Run", "RunId", "HTTP", "HttpServer", "HTTPServer", "Utf8", "_X"].map(humps), [1, 2, 1, 2, 2, 1, 1]);
    }

    #[test]
    fn underscore_makes_two_words() {
        let text = "fn run() {} fn _run() {} fn run_once() {} impl A for B { fn from() {} } #[cfg(test)] mod t { fn x() {} }";
        assert_eq!(counted(function_names, &[("crates/a/src/b.rs", text), ("crates/a/tests/it/main.rs", "fn t() {}")]), (2, 3));
    }

    #[test]
    fn types_count_by_humps() {
        let text = "struct Run; enum RunState {} trait Store {} type Alias = u8; fn f() { struct Inner; }";
        assert_eq!(counted(type_names, &[("crates/a/src/b.rs", text)]), (4, 5));
    }
}
