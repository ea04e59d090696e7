//! Counts pronouns that stand for a noun: "who" and, outside questions, "what".

use super::markdown::blocks;
use super::prose::{Sentence, sentences};
use super::tally::{Offender, Tally};
use super::workspace::Workspace;

pub(crate) fn who_in_comments(workspace: &Workspace<'_>, home: &str) -> Tally {
    in_comments(workspace, home, who)
}

pub(crate) fn what_in_comments(workspace: &Workspace<'_>, home: &str) -> Tally {
    in_comments(workspace, home, what)
}

pub(crate) fn who_in_pages(workspace: &Workspace<'_>, home: &str) -> Tally {
    in_pages(workspace, home, who)
}

pub(crate) fn what_in_pages(workspace: &Workspace<'_>, home: &str) -> Tally {
    in_pages(workspace, home, what)
}

fn in_comments(workspace: &Workspace<'_>, home: &str, count: fn(&Sentence) -> usize) -> Tally {
    let mut tally = Tally::default();
    for file in workspace.rust(home) {
        add(&mut tally, &file.source.path, &file.comments, count);
    }
    tally
}

fn in_pages(workspace: &Workspace<'_>, home: &str, count: fn(&Sentence) -> usize) -> Tally {
    let mut tally = Tally::default();
    for page in workspace.markdown(home) {
        add(&mut tally, &page.path, &sentences(&blocks(page.text.lines(), 1)), count);
    }
    tally
}

fn add(tally: &mut Tally, path: &str, sentences: &[Sentence], count: fn(&Sentence) -> usize) {
    for sentence in sentences {
        tally.of += sentence.words().count();
        let place = || Offender::new(path, sentence.line, sentence.text.replace('\n', " "));
        tally.offenders.extend(std::iter::repeat_with(place).take(count(sentence)));
    }
}

fn who(sentence: &Sentence) -> usize {
    occurrences(sentence, &["who", "whoever", "whom", "whomever"])
}

fn what(sentence: &Sentence) -> usize {
    if sentence.is_question() { 0 } else { occurrences(sentence, &["what", "whatever"]) }
}

fn occurrences(sentence: &Sentence, wanted: &[&str]) -> usize {
    let words = sentence.text.split(|mark: char| !mark.is_alphanumeric() && mark != '_');
    words.filter(|word| wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted))).count()
}

#[cfg(test)]
mod tests {
    use super::super::source_tree::SourceTree;
    use super::*;

    fn counted(measure: impl Fn(&Workspace<'_>, &str) -> Tally, path: &str, text: &str) -> (usize, usize) {
        let texts = SourceTree::of(&[(path, text)]);
        let tally = measure(&Workspace::new(&texts, Vec::new()), "a");
        (tally.offenders.len(), tally.of)
    }

    #[test]
    fn questions_may_contain_what() {
        let text = "// What is left? Whatever it is, what counts is\n// what `what` says. What\n// now?";
        assert_eq!(counted(what_in_comments, "crates/a/src/b.rs", text), (3, 14));
    }

    #[test]
    fn who_counts_in_every_form() {
        let text = "/// Who's there? Whoever knows whom; whose is free. `who` who_is\nfn who() { \"who\"; }";
        assert_eq!(counted(who_in_comments, "crates/a/src/b.rs", text).0, 3);
    }

    #[test]
    fn code_in_pages_is_ignored() {
        let text = "# Who\n\n```\nwhat who\n```\n\nWhat it does.\n\n| what |\n| --- |\n";
        assert_eq!(counted(who_in_pages, "crates/a/README.md", text), (1, 4));
        assert_eq!(counted(what_in_pages, "crates/a/README.md", text), (1, 4));
    }
}
