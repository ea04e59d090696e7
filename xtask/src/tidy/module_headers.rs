//! Checks that source files begin with a short `//!` line.

use super::prose::{marker, words};
use super::rust_file::RustFile;
use super::tally::{Offender, Tally};
use super::workspace::Workspace;

const LONGEST: usize = 15;

pub(crate) fn missing_headers(workspace: &Workspace<'_>, home: &str) -> Tally {
    let mut tally = Tally::default();
    for file in workspace.compiled(home) {
        tally.of += 1;
        if first_line(file).is_none() {
            tally
                .offenders
                .push(Offender::new(&file.source.path, 1, "the file does not begin with a `//!` line"));
        }
    }
    tally
}

/// First lines over 15 words; a sentence that goes on in the next line counts as a whole.
pub(crate) fn long_headers(workspace: &Workspace<'_>, home: &str) -> Tally {
    let mut tally = Tally::default();
    for file in workspace.compiled(home) {
        let Some(line) = first_line(file) else { continue };
        tally.of += 1;
        let count = words(&line).count();
        if count > LONGEST {
            tally
                .offenders
                .push(Offender::new(&file.source.path, 1, format!("the first line has {count} words: {line}")));
        }
    }
    tally
}

/// The first line of the module's documentation, with the rest of its last sentence.
fn first_line(file: &RustFile<'_>) -> Option<String> {
    let header = file.tokens.iter().take_while(|token| marker(token.text) == "//!");
    let mut lines = header.map(|token| token.text["//!".len()..].trim()).take_while(|line| !line.is_empty());
    let mut text = lines.next()?.to_owned();
    while !text.ends_with(['.', '!', '?', ':']) {
        let Some(line) = lines.next() else { break };
        text.push(' ');
        text.push_str(line);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::super::source_tree::SourceTree;
    use super::*;

    fn counted(measure: impl Fn(&Workspace<'_>, &str) -> Tally, text: &str) -> (usize, usize) {
        let texts = SourceTree::of(&[("crates/a/src/b.rs", text)]);
        let tally = measure(&Workspace::new(&texts, Vec::new()), "a");
        (tally.offenders.len(), tally.of)
    }

    #[test]
    fn other_comments_are_no_header() {
        for text in ["", "// a\n", "use b;\n//! a\n", "/// a\nfn f() {}", "//!\n//! a\n"] {
            assert_eq!(counted(missing_headers, text), (1, 1), "{text}");
        }
        assert_eq!(counted(missing_headers, "//! Reads a.\n"), (0, 1));
    }

    #[test]
    fn long_first_line_is_reported() {
        let words = |count: usize| vec!["word"; count].join(" ");
        assert_eq!(counted(long_headers, &format!("//! {}.\n//! More {}.", words(15), words(20))), (0, 1));
        assert_eq!(counted(long_headers, &format!("//! {}.", words(16))), (1, 1));
        assert_eq!(counted(long_headers, &format!("//! {}\n//! {}.", words(8), words(8))), (1, 1));
        assert_eq!(counted(long_headers, "use a;"), (0, 0));
    }
}
