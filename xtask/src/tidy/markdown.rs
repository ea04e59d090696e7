//! Separates the prose of Markdown from code, tables and headings.

use crate::figures::without;

/// A paragraph, a list item or a heading, its lines joined with `\n`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProseBlock {
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) is_heading: bool,
}

/// The prose of `lines`, the first of which has number `first_line`. Fenced and indented code,
/// tables, HTML comments and definitions of links are no prose.
pub(crate) fn blocks<'a>(lines: impl IntoIterator<Item = &'a str>, first_line: usize) -> Vec<ProseBlock> {
    let mut reader = BlockReader::default();
    for (index, line) in lines.into_iter().enumerate() {
        reader.take(line, first_line + index);
    }
    reader.finish_block();
    reader.blocks
}

#[derive(Default)]
struct BlockReader {
    blocks: Vec<ProseBlock>,
    open: Option<ProseBlock>,
    fences: Fences,
    in_comment: bool,
    in_list: bool,
    after_blank: bool,
}

impl BlockReader {
    fn take(&mut self, line: &str, number: usize) {
        let shown = without(line, "<!--", "-->");
        let text = if line.trim_start().starts_with("<!--") { line.trim() } else { shown.trim() };
        if self.fences.is_code(line) {
            self.finish_block();
        } else if self.in_comment || text.starts_with("<!--") {
            self.in_comment = !text.contains("-->");
        } else {
            self.take_prose(line, text, number);
        }
        self.after_blank = text.is_empty();
    }

    fn take_prose(&mut self, line: &str, text: &str, number: usize) {
        let indented = line.starts_with("    ") || line.starts_with('\t');
        let is_code = indented && !self.in_list && self.open.is_none();
        if text.is_empty() || text.starts_with('|') || is_code || is_link_definition(text) || is_rule(text) {
            self.finish_block();
            return;
        }
        let item = without_bullet(text);
        self.in_list = item.len() < text.len() || (self.in_list && (indented || line.starts_with(' ') || !self.after_blank));
        let heading = heading(text);
        if heading.is_some() || item.len() < text.len() {
            self.finish_block();
        }
        let text = heading.unwrap_or_else(|| item.trim_start_matches("> "));
        match &mut self.open {
            Some(block) => {
                block.text.push('\n');
                block.text.push_str(text);
            }
            None => self.open = Some(ProseBlock { line: number, text: text.to_owned(), is_heading: heading.is_some() }),
        }
        if heading.is_some() {
            self.finish_block();
        }
    }

    fn finish_block(&mut self) {
        self.blocks.extend(self.open.take());
    }
}

/// Follows fenced code from line to line.
#[derive(Default)]
pub(crate) struct Fences {
    open: Option<String>,
}

impl Fences {
    /// Whether the next line is fenced code or a fence itself.
    pub(crate) fn is_code(&mut self, line: &str) -> bool {
        let text = line.trim();
        match &self.open {
            Some(fence) => {
                if text.starts_with(fence.as_str()) && text.trim_start_matches(&fence[..1]).is_empty() {
                    self.open = None;
                }
                true
            }
            None => {
                self.open = opening_fence(text);
                self.open.is_some()
            }
        }
    }
}

fn opening_fence(text: &str) -> Option<String> {
    let mark = text.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
    let length = text.chars().take_while(|other| *other == mark).count();
    let is_inline = mark == '`' && text[length..].contains('`');
    (length >= 3 && !is_inline).then(|| mark.to_string().repeat(length))
}

/// The text of a heading such as `## Title`.
fn heading(text: &str) -> Option<&str> {
    let title = text.trim_start_matches('#');
    let level = text.len() - title.len();
    ((1..=6).contains(&level) && title.starts_with(' ')).then(|| title.trim().trim_end_matches('#').trim_end())
}

fn without_bullet(text: &str) -> &str {
    let digits = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let number = if digits.len() < text.len() { digits.strip_prefix(". ").or_else(|| digits.strip_prefix(") ")) } else { None };
    number
        .or_else(|| ["- ", "* ", "+ "].iter().find_map(|bullet| text.strip_prefix(bullet)))
        .map_or(text, str::trim_start)
}

fn is_link_definition(text: &str) -> bool {
    text.starts_with('[') && text.contains("]: ")
}

fn is_rule(text: &str) -> bool {
    text.len() >= 3 && text.chars().all(|mark| "-=*_ ".contains(mark))
}

/// The text as a reader sees it: code spans become the word `CODE`, links and images their text.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['`', ']', '[']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('`') {
            let span = code_span(rest);
            plain.push_str(if span.len() > 1 { "CODE" } else { "" });
            plain.extend(span.matches('\n'));
            rest = &rest[span.len()..];
        } else if let Some(end) = rest.strip_prefix("](").and_then(|target| target.find(')')) {
            plain.extend(rest[..end].matches('\n'));
            rest = &rest["](".len() + end + 1..];
        } else {
            rest = &rest[1..];
        }
    }
    plain.push_str(rest);
    plain
}

/// The code span that `text` begins with, or one backtick when nothing closes it.
pub(crate) fn code_span(text: &str) -> &str {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let body = &text[ticks..];
    let mut at = 0;
    while let Some(found) = body[at..].find('`') {
        let start = at + found;
        let closing = body[start..].len() - body[start..].trim_start_matches('`').len();
        if closing == ticks {
            return &text[..ticks + start + closing];
        }
        at = start + closing;
    }
    &text[..1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        blocks(text.lines(), 1).into_iter().map(|block| block.text).collect()
    }

    #[test]
    fn fences_hide_code() {
        assert_eq!(texts("a\n```rust\nlet b;\n```\nc"), ["a", "c"]);
        assert_eq!(texts("````\n```\nstill code\n```\n````\nd"), ["d"]);
        assert_eq!(texts("~~~\n```\n~~~\ne"), ["e"]);
        assert_eq!(texts("```inline``` f\ng"), ["```inline``` f\ng"]);
    }

    #[test]
    fn comment_in_line_is_no_prose() {
        assert_eq!(texts("It takes 5 s. <!-- results: a/b -->\nc"), ["It takes 5 s.\nc"]);
    }

    #[test]
    fn tables_and_rules_are_skipped() {
        assert_eq!(texts("a\n| b | c |\n| --- | --- |\n\n---\nd\n[e]: f.md"), ["a", "d"]);
    }

    #[test]
    fn indented_code_needs_blank_line() {
        assert_eq!(texts("a\n\n    let b;\n\nc"), ["a", "c"]);
        assert_eq!(texts("- a\n\n      more\n- b"), ["a", "more", "b"]);
    }

    #[test]
    fn list_items_are_apart() {
        assert_eq!(texts("a:\n- b\n  c\n1. d\n> e\n\n2020 was"), ["a:", "b\nc", "d\ne", "2020 was"]);
    }

    #[test]
    fn headings_are_apart() {
        let blocks = blocks(["# A title #", "text", "#hash", "<!-- x", "y --> z", "last"], 7);
        let found: Vec<_> = blocks.iter().map(|block| (block.line, block.text.as_str(), block.is_heading)).collect();
        assert_eq!(found, [(7, "A title", true), (8, "text\n#hash\nlast", false)]);
    }

    #[test]
    fn plain_text_keeps_words() {
        assert_eq!(plain("see `x y` and ``a ` b`` in [the guide](a.md#b), [x], 5` wide"), "see CODE and CODE in the guide, x, 5 wide");
        assert_eq!(plain("a `b\nc` [d\ne](f)"), "a CODE\n d\ne");
    }
}
