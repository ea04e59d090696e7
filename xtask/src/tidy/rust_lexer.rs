//! Splits Rust text into words, marks, literals, lifetimes and comments.

/// The class of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// An identifier or a keyword; a raw identifier keeps its `r#`.
    Word,
    /// One character of punctuation: `::` is two marks.
    Mark,
    Lifetime,
    /// A string, a character or a number.
    Literal,
    Comment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    /// The line of the first character, counted from 1.
    pub(crate) line: usize,
}

impl Token<'_> {
    pub(crate) fn is_mark(&self, mark: char) -> bool {
        self.kind == TokenKind::Mark && self.text.starts_with(mark)
    }

    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text == word
    }
}

/// Every token of `text`, comments included. Text that is no Rust yields tokens as well, never an
/// error: the compiler checks the syntax.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut cursor = Lexer { text, bytes: text.as_bytes(), at: 0, line: 1 };
    let mut tokens = Vec::with_capacity(text.len() / 5);
    while let Some(token) = cursor.next_token() {
        tokens.push(token);
    }
    tokens
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn next_token(&mut self) -> Option<Token<'a>> {
        self.skip_blanks();
        let (start, line) = (self.at, self.line);
        let kind = match self.peek(0)? {
            b'/' if self.peek(1) == Some(b'/') => self.line_comment(),
            b'/' if self.peek(1) == Some(b'*') => self.block_comment(),
            b'"' => self.string(),
            b'\'' => self.quote(),
            byte if byte.is_ascii_digit() => self.number(),
            byte if is_word_byte(byte) => self.word(),
            _ => {
                self.at += 1;
                TokenKind::Mark
            }
        };
        self.line += self.bytes[start..self.at].iter().filter(|byte| **byte == b'\n').count();
        Some(Token { kind, text: &self.text[start..self.at], line })
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.peek(0).filter(u8::is_ascii_whitespace) {
            self.line += usize::from(byte == b'\n');
            self.at += 1;
        }
    }

    /// Moves on while `wanted` accepts the next byte.
    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.peek(0).is_some_and(&wanted) {
            self.at += 1;
        }
    }

    fn line_comment(&mut self) -> TokenKind {
        self.take_while(|byte| byte != b'\n');
        TokenKind::Comment
    }

    fn block_comment(&mut self) -> TokenKind {
        let mut depth = 0_usize;
        while self.at < self.bytes.len() {
            let opens = self.bytes[self.at..].starts_with(b"/*");
            let closes = self.bytes[self.at..].starts_with(b"*/");
            self.at += if opens || closes { 2 } else { 1 };
            depth += usize::from(opens);
            depth -= usize::from(closes);
            if depth == 0 {
                break;
            }
        }
        TokenKind::Comment
    }

    fn string(&mut self) -> TokenKind {
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                break;
            }
        }
        self.at = self.at.min(self.bytes.len());
        TokenKind::Literal
    }

    /// A raw string from its first `#` or its quote.
    fn raw_string(&mut self) -> TokenKind {
        let start = self.at;
        self.take_while(|byte| byte == b'#');
        let closing = format!("\"{}", "#".repeat(self.at - start));
        let body = self.at + 1;
        let length = self.text[body..].find(&closing).map(|found| found + closing.len());
        self.at = body + length.unwrap_or(self.bytes.len() - body);
        TokenKind::Literal
    }

    /// A character such as `'a'` or a lifetime such as `'a`.
    fn quote(&mut self) -> TokenKind {
        let rest = &self.text[self.at + 1..];
        let first = rest.chars().next().unwrap_or('\'');
        let after = self.at + 1 + first.len_utf8().min(rest.len());
        if first == '\\' {
            self.at = after + 1;
            self.take_while(|byte| byte != b'\'' && byte != b'\n');
            self.at = (self.at + 1).min(self.bytes.len());
            TokenKind::Literal
        } else if self.bytes.get(after) == Some(&b'\'') {
            self.at = after + 1;
            TokenKind::Literal
        } else {
            self.at += 1;
            self.take_while(is_word_byte);
            TokenKind::Lifetime
        }
    }

    fn number(&mut self) -> TokenKind {
        self.take_while(is_word_byte);
        if self.peek(0) == Some(b'.') && self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
            self.take_while(is_word_byte);
        }
        TokenKind::Literal
    }

    /// A word, or the literal or raw identifier that its letters introduce.
    fn word(&mut self) -> TokenKind {
        let start = self.at;
        self.take_while(is_word_byte);
        let word = &self.bytes[start..self.at];
        match (word, self.peek(0)) {
            (b"r" | b"br" | b"cr", Some(b'"')) => self.raw_string(),
            (b"r" | b"br" | b"cr", Some(b'#')) if self.hashes_open_string() => self.raw_string(),
            (b"b" | b"c", Some(b'"')) => self.string(),
            (b"b", Some(b'\'')) => self.quote(),
            (b"r", Some(b'#')) if self.peek(1).is_some_and(is_word_byte) => {
                self.at += 1;
                self.take_while(is_word_byte);
                TokenKind::Word
            }
            _ => TokenKind::Word,
        }
    }

    fn hashes_open_string(&self) -> bool {
        self.bytes[self.at..].iter().find(|byte| **byte != b'#') == Some(&b'"')
    }
}

/// Letters of other scripts count as letters, as in Rust.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_kind(text: &str, kind: TokenKind) -> Vec<&str> {
        tokens(text).into_iter().filter(|token| token.kind == kind).map(|token| token.text).collect()
    }

    #[test]
    fn raw_string_hides_comment_marks() {
        let text = r###"let a = r#"// "no" /* comment"#; b"\"//"; cr##"x"#"##; // yes"###;
        assert_eq!(of_kind(text, TokenKind::Comment), ["// yes"]);
        assert_eq!(of_kind(text, TokenKind::Literal).len(), 3);
    }

    #[test]
    fn nested_comment_ends_at_last_mark() {
        assert_eq!(of_kind("a /* b /* c */ \" d */ e", TokenKind::Word), ["a", "e"]);
    }

    #[test]
    fn lifetime_differs_from_character() {
        let text = r"fn f<'a>(c: &'a str) { '\''; 'x'; '\u{1F}'; 'é'; b'\\'; '_: }";
        assert_eq!(of_kind(text, TokenKind::Lifetime), ["'a", "'a", "'_"]);
        assert_eq!(of_kind(text, TokenKind::Literal), [r"'\''", "'x'", r"'\u{1F}'", "'é'", r"b'\\'"]);
    }

    #[test]
    fn range_leaves_both_numbers() {
        assert_eq!(of_kind("0..10; 1.5; 0xff_u8; x.0", TokenKind::Literal), ["0", "10", "1.5", "0xff_u8", "0"]);
    }

    #[test]
    fn raw_identifier_is_one_word() {
        assert_eq!(of_kind("r#type br r", TokenKind::Word), ["r#type", "br", "r"]);
    }

    #[test]
    fn lines_count_inside_long_tokens() {
        let lines: Vec<usize> = tokens("/* 1\n2 */ a \"3\n4\\\n\" b").iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 2, 2, 4]);
    }

    #[test]
    fn unfinished_text_ends_quietly() {
        for text in ["\"open", "r#\"open", "/* open", "'", "'\\", "b'", "\"\\", "r#"] {
            assert!(!tokens(text).is_empty(), "{text}");
        }
    }
}
