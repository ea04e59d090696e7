//! Finds lines of Rust that are wider than a screen column allows.

use super::rust_file::RustFile;
use super::rust_lexer::{Token, TokenKind};
use super::tally::{Offender, Tally};
use super::workspace::Workspace;
use std::collections::BTreeMap;

pub(crate) const COLUMNS: usize = 100;

/// Lines that a comment makes too wide: rustfmt leaves comments alone.
pub(crate) fn wide_comments(workspace: &Workspace<'_>, home: &str) -> Tally {
    wide_lines(workspace, home, true)
}

/// Lines that code or a literal makes too wide.
pub(crate) fn wide_code(workspace: &Workspace<'_>, home: &str) -> Tally {
    wide_lines(workspace, home, false)
}

fn wide_lines(workspace: &Workspace<'_>, home: &str, wanted: bool) -> Tally {
    let mut tally = Tally::default();
    for file in workspace.rust(home) {
        let comments = comments_by_line(file);
        for (number, line) in (1..).zip(file.source.text.lines()) {
            tally.of += 1;
            let width = line.chars().count();
            if width > COLUMNS && comments.get(&number).is_some_and(|comment| covers_limit(comment, number, width)) == wanted {
                tally
                    .offenders
                    .push(Offender::new(&file.source.path, number, format!("the line has {width} columns")));
            }
        }
    }
    tally
}

/// The last comment of every line that has one.
fn comments_by_line<'f, 'a>(file: &'f RustFile<'a>) -> BTreeMap<usize, &'f Token<'a>> {
    let comments = file.tokens.iter().filter(|token| token.kind == TokenKind::Comment);
    let lines = |token: &Token<'_>| token.line..=token.line + token.text.matches('\n').count();
    comments.flat_map(|token| lines(token).map(move |line| (line, token))).collect()
}

/// Whether the first column over the limit lies in the comment. A comment that opens on its line
/// and is closed there is taken to end the line.
fn covers_limit(comment: &Token<'_>, line: usize, width: usize) -> bool {
    let first = comment.text.lines().next().unwrap_or_default().chars().count();
    comment.line < line || width - first <= COLUMNS
}

#[cfg(test)]
mod tests {
    use super::super::source_tree::SourceTree;
    use super::*;

    fn wide(text: &str) -> (Vec<usize>, Vec<usize>) {
        let texts = SourceTree::of(&[("crates/a/src/b.rs", text)]);
        let workspace = Workspace::new(&texts, Vec::new());
        let lines =
            |measure: fn(&Workspace<'_>, &str) -> Tally| measure(&workspace, "a").offenders.iter().map(|place| place.line).collect();
        (lines(wide_comments), lines(wide_code))
    }

    #[test]
    fn limit_counts_characters() {
        let text = format!("// {}\n// {}\n// {}é\n", "x".repeat(97), "x".repeat(98), "é".repeat(96));
        assert_eq!(wide(&text), (vec![2], vec![]));
    }

    #[test]
    fn overflow_decides_comment_or_code() {
        let trailing = format!("let a = b; // {}", "x".repeat(90));
        let literal = format!("let a = \"// {}\";", "x".repeat(100));
        let both = format!("let a = {}; // why", "x".repeat(100));
        let block = format!("/* a\n{} */", "x".repeat(120));
        assert_eq!(wide(&[trailing, literal, both, block].join("\n")), (vec![1, 5], vec![2, 3]));
    }
}
