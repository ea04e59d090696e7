//! Renders bytes as hexadecimal, as text or as JSON in lines.

use std::fmt::Write;

const BYTES_PER_LINE: usize = 32;

/// Lines of hexadecimal digits.
pub(super) fn hex(bytes: &[u8], indent: &str) -> String {
    let mut text = String::new();
    for line in bytes.chunks(BYTES_PER_LINE) {
        text.push_str(indent);
        for byte in line {
            let _strings_always_grow = write!(text, "{byte:02x}");
        }
        text.push('\n');
    }
    text
}

/// The content of a field: JSON in lines, other text in quotes, everything else in hexadecimal.
pub(super) fn content(bytes: &[u8]) -> String {
    let readable = std::str::from_utf8(bytes).ok().filter(|text| !text.chars().any(char::is_control));
    match readable {
        Some(text) if text.len() > 2 && text.starts_with(['{', '[']) => format!("JSON\n{}", json(text, "  ")),
        Some(text) => format!("{text:?}\n"),
        None => format!("{} bytes\n{}", bytes.len(), hex(bytes, "  ")),
    }
}

/// Breaks JSON into a line per element; lists of numbers stay on one line. Each line has its
/// characters as they were, so the text loses nothing.
pub(super) fn json(text: &str, indent: &str) -> String {
    let mut lines = Lines { indent, text: String::new(), line: String::new(), broken: Vec::new() };
    let (mut quoted, mut escaped, mut before) = (false, false, ' ');
    for c in text.chars() {
        if !quoted {
            lines.break_between(before, c);
        }
        lines.line.push(c);
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
        before = if quoted { ' ' } else { c };
    }
    lines.end_line();
    lines.text
}

struct Lines<'a> {
    indent: &'a str,
    text: String,
    line: String,
    /// Per open object or list, whether each of its elements has a line.
    broken: Vec<bool>,
}

impl Lines<'_> {
    /// Ends the line if it ends between those two characters, which are not part of a string.
    fn break_between(&mut self, before: char, next: char) {
        let (opened, closes) = (matches!(before, '{' | '['), matches!(next, '}' | ']'));
        if opened && !closes {
            let broken = !next.is_ascii_digit();
            if broken {
                self.end_line();
            }
            self.broken.push(broken);
        } else if closes && !opened {
            if self.broken.last() == Some(&true) {
                self.end_line();
            }
            self.broken.pop();
        } else if before == ',' && self.broken.last() == Some(&true) {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let depth = self.broken.iter().filter(|broken| **broken).count();
        let _strings_always_grow = writeln!(self.text, "{}{}{}", self.indent, "  ".repeat(depth), self.line);
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_breaks_between_elements() {
        let lines = json(r#"{"a":[{},1],"b":"x,{\"}","c":[],"d":[1,2]}"#, "");
        assert_eq!(lines, "{\n  \"a\":[\n    {},\n    1\n  ],\n  \"b\":\"x,{\\\"}\",\n  \"c\":[],\n  \"d\":[1,2]\n}\n");
    }

    #[test]
    fn hex_is_wrapped() {
        assert_eq!(hex(&[0xab; 33], "  "), format!("  {}\n  ab\n", "ab".repeat(32)));
    }

    #[test]
    fn unreadable_content_is_hex() {
        assert_eq!(content(b"a\"b"), "\"a\\\"b\"\n");
        assert_eq!(content(&[0xff, 0]), "2 bytes\n  ff00\n");
        assert_eq!(content(b"{\"a\":1}"), "JSON\n  {\n    \"a\":1\n  }\n");
    }
}
