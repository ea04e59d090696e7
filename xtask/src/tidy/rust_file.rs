//! Parses a Rust file once for all measures.

use super::prose::{Sentence, comment_blocks, sentences};
use super::rust_items::{RustItem, items};
use super::rust_lexer::{Token, TokenKind, tokens};
use super::source_tree::SourceText;
use super::test_code::without_tests;

/// A Rust file with its tokens.
pub(crate) struct RustFile<'a> {
    pub(crate) source: &'a SourceText,
    /// Comments included.
    pub(crate) tokens: Vec<Token<'a>>,
    /// Without comments, and without items that only tests compile.
    pub(crate) code: Vec<Token<'a>>,
    /// The sentences of all comments.
    pub(crate) comments: Vec<Sentence>,
    /// Of `code`.
    pub(crate) items: Vec<RustItem<'a>>,
    /// Modules without a body that only tests compile: `#[cfg(test)] mod name;`.
    pub(crate) test_modules: Vec<&'a str>,
}

impl<'a> RustFile<'a> {
    pub(crate) fn parse(source: &'a SourceText) -> Self {
        let tokens = tokens(&source.text);
        let all_code: Vec<Token<'a>> = tokens.iter().filter(|token| token.kind != TokenKind::Comment).copied().collect();
        let (code, test_modules) = without_tests(&all_code);
        let items = items(&code);
        let comments = sentences(&comment_blocks(&tokens));
        Self { source, tokens, code, comments, items, test_modules }
    }

    /// The path below `src`, unless the file lies elsewhere.
    pub(crate) fn below_src(&self) -> Option<&'a str> {
        let path = &self.source.path;
        let start = path
            .find("/src/")
            .filter(|at| !path[..*at].contains("/tests/") && !path[..*at].contains("/examples/"))?;
        Some(&path[start + "/src/".len()..])
    }

    /// The file of a `mod name;` of this file, without `.rs` or `/mod.rs`.
    pub(crate) fn module_path(&self, name: &str) -> String {
        let path = self.source.path.trim_end_matches(".rs");
        let (folder, stem) = path.rsplit_once('/').unwrap_or(("", path));
        if ["mod", "lib", "main"].contains(&stem) { format!("{folder}/{name}") } else { format!("{path}/{name}") }
    }
}

#[cfg(test)]
mod tests {
    use super::super::source_tree::SourceTree;
    use super::*;

    fn with_file<T>(text: &str, look: impl Fn(&RustFile<'_>) -> T) -> T {
        let texts = SourceTree::of(&[("crates/kernel/src/run.rs", text)]);
        look(&texts.parse_rust()[0])
    }

    #[test]
    fn test_module_without_body_is_named() {
        let modules = with_file("#[cfg(test)]\n#[path = \"x.rs\"]\npub(crate) mod checks;", |file| {
            file.test_modules.iter().map(|name| file.module_path(name)).collect::<Vec<_>>()
        });
        assert_eq!(modules, ["crates/kernel/src/run/checks"]);
    }
}
