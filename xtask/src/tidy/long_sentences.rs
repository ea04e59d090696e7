//! Finds sentences in Markdown that are too long to read once.

use super::markdown::blocks;
use super::prose::sentences;
use super::tally::{Offender, Tally};
use super::workspace::Workspace;

const LONGEST: usize = 28;

/// Sentences over 28 words. Code, tables and headings are no sentences.
pub(crate) fn long_sentences(workspace: &Workspace<'_>, home: &str) -> Tally {
    let mut tally = Tally::default();
    for page in workspace.markdown(home) {
        let mut prose = blocks(page.text.lines(), 1);
        prose.retain(|block| !block.is_heading);
        for sentence in sentences(&prose) {
            tally.of += 1;
            let words = sentence.words().count();
            if words > LONGEST {
                let start: Vec<_> = sentence.words().take(6).collect();
                tally
                    .offenders
                    .push(Offender::new(&page.path, sentence.line, format!("{words} words: {} …", start.join(" "))));
            }
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::super::source_tree::SourceTree;
    use super::*;

    fn places(text: &str) -> Vec<(usize, String)> {
        let texts = SourceTree::of(&[("docs/guide/a.md", text)]);
        long_sentences(&Workspace::new(&texts, Vec::new()), "docs")
            .offenders
            .into_iter()
            .map(|place| (place.line, place.note))
            .collect()
    }

    #[test]
    fn sentence_over_limit_is_reported() {
        let words = |count: usize| format!("Word{}", " word".repeat(count - 1));
        assert!(places(&format!("A. {}.", words(28))).is_empty());
        assert_eq!(
            places(&format!("A.\n{}\n{} end. B.", words(20), words(8))),
            [(2, "29 words: Word word word word word word …".to_owned())]
        );
    }

    #[test]
    fn code_span_is_one_word() {
        assert!(places(&format!("{}`a b c d e` end.", "word ".repeat(26))).is_empty());
        assert!(places(&format!("```\n{}\n```\n| {} |\n", "word ".repeat(40), "word ".repeat(40))).is_empty());
    }
}
