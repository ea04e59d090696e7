//! Splits comments and pages into sentences and words.

use super::markdown::{ProseBlock, blocks, plain};
use super::rust_lexer::{Token, TokenKind};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sentence {
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Sentence {
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        words(&self.text)
    }

    pub(crate) fn is_question(&self) -> bool {
        self.text.trim_end_matches(is_closing).ends_with('?')
    }
}

/// Words as a reader counts them: marks alone are none.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric))
}

/// The sentences of blocks, without code spans and addresses of links.
pub(crate) fn sentences(blocks: &[ProseBlock]) -> Vec<Sentence> {
    blocks.iter().flat_map(sentences_of_block).collect()
}

fn sentences_of_block(block: &ProseBlock) -> Vec<Sentence> {
    let text = plain(&block.text);
    let (mut sentences, mut start) = (Vec::new(), 0);
    for (at, mark) in text.char_indices().filter(|(_, mark)| ".?!".contains(*mark)) {
        let closing = text[at + mark.len_utf8()..]
            .chars()
            .take_while(|mark| is_closing(*mark))
            .map(char::len_utf8)
            .sum::<usize>();
        let end = at + mark.len_utf8() + closing;
        if end > start && ends_sentence(&text[..end], &text[end..]) {
            sentences.push(sentence(block, &text, start, end));
            start = end;
        }
    }
    if text[start..].contains(char::is_alphanumeric) {
        sentences.push(sentence(block, &text, start, text.len()));
    }
    sentences
}

fn sentence(block: &ProseBlock, text: &str, start: usize, end: usize) -> Sentence {
    let blank = text[start..end].len() - text[start..end].trim_start().len();
    let line = block.line + text[..start + blank].matches('\n').count();
    Sentence { line, text: text[start..end].trim().to_owned() }
}

/// Whether a mark at the end of `before`, followed by `after`, ends a sentence. After a full stop a
/// sentence may begin with a small letter, such as the name of a file. After `?` and `!` a small
/// letter continues the sentence: "Ready?" asks the client.
fn ends_sentence(before: &str, after: &str) -> bool {
    const ABBREVIATIONS: [&str; 8] = ["e.g.", "i.e.", "etc.", "vs.", "cf.", "no.", "incl.", "approx."];
    let next = after.trim_start().trim_start_matches(|open| "\"'(*_“".contains(open)).chars().next();
    let last_word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let last_word = last_word.trim_matches(|mark| "()\"".contains(mark)).to_lowercase();
    let follows_space = after.is_empty() || after.starts_with(char::is_whitespace);
    let begins_anew = last_word.ends_with('.') || next.is_none_or(|next| !next.is_lowercase());
    follows_space && begins_anew && !ABBREVIATIONS.contains(&last_word.as_str())
}

fn is_closing(mark: char) -> bool {
    "\"')*_”".contains(mark)
}

/// The prose of comments among the tokens of a file. Neighbouring lines of one kind (`//`, `///` or
/// `//!`) are one text.
pub(crate) fn comment_blocks(tokens: &[Token<'_>]) -> Vec<ProseBlock> {
    let mut found = Vec::new();
    let mut run: Vec<&Token<'_>> = Vec::new();
    let mut code_line = 0;
    for token in tokens {
        if token.kind != TokenKind::Comment {
            code_line = token.line + token.text.matches('\n').count();
            continue;
        }
        let trails_code = token.line == code_line;
        let continues = run.last().is_some_and(|last| {
            !trails_code && last.line > code_line && last.line + 1 == token.line && marker(last.text) == marker(token.text)
        });
        if !continues {
            found.extend(blocks_of_run(&run));
            run.clear();
        }
        run.push(token);
    }
    found.extend(blocks_of_run(&run));
    found
}

fn blocks_of_run(run: &[&Token<'_>]) -> Vec<ProseBlock> {
    let Some(first) = run.first() else { return Vec::new() };
    let lines = run.iter().flat_map(|token| {
        let body = token.text[marker(token.text).len()..].trim_end_matches("*/");
        let is_block = token.text.starts_with("/*");
        body.lines()
            .map(move |line| if is_block { line.trim_start().trim_start_matches('*') } else { line })
    });
    blocks(lines.map(|line| line.strip_prefix(' ').unwrap_or(line)), first.line)
}

/// The characters that open a comment.
pub(crate) fn marker(comment: &str) -> &'static str {
    ["//!", "///", "//", "/*!", "/**", "/*"]
        .into_iter()
        .find(|marker| comment.starts_with(marker))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::rust_lexer::tokens;
    use super::*;

    fn in_page(text: &str) -> Vec<String> {
        sentences(&blocks(text.lines(), 1)).into_iter().map(|sentence| sentence.text).collect()
    }

    fn in_comments(text: &str) -> Vec<(usize, String)> {
        sentences(&comment_blocks(&tokens(text)))
            .into_iter()
            .map(|sentence| (sentence.line, sentence.text))
            .collect()
    }

    #[test]
    fn full_stop_ends_sentence() {
        assert_eq!(
            in_page("One two. Three\nfour! \"Five?\" (Six.) `x` is."),
            ["One two.", "Three\nfour!", "\"Five?\"", "(Six.)", "CODE is."]
        );
    }

    #[test]
    fn abbreviation_ends_no_sentence() {
        assert_eq!(
            in_page("A store, e.g. Redis, takes 1.5 s and a.md, i.e. Much. B."),
            ["A store, e.g. Redis, takes 1.5 s and a.md, i.e. Much.", "B."]
        );
    }

    #[test]
    fn question_is_recognised() {
        let question = |text: &str| sentences(&blocks([text], 1))[0].is_question();
        assert!(question("What is a run?") && question("(What is `a`?)"));
        assert!(!question("It shows what failed."));
    }

    #[test]
    fn comment_lines_join() {
        let found = in_comments("//! A\n//! b. C\n// d\nx(); // e\n// f\n\n/// G\n/// ```\n/// let h; // i\n/// ```\n/* J\n * k. */");
        let expected = [(1, "A\nb."), (2, "C"), (3, "d"), (4, "e"), (5, "f"), (7, "G"), (11, "J\nk.")];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn string_is_no_comment() {
        assert!(in_comments("let a = r#\"// who\"#; let b = \"/* what */\";").is_empty());
    }
}
