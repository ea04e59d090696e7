//! Lines of a terminal that are redrawn in place.

use crate::output::table::cut;
use std::io::Write;

/// What is drawn on the terminal now.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    drawn: usize,
}

impl Screen {
    /// Draws these lines where the last ones stood. What does not fit into the height gives way from the top, below the first line.
    pub(super) fn draw(&mut self, lines: &[String]) {
        let (width, height) = size();
        let lines = fitted(lines, width, height);
        // Moving the cursor is no matter of colour, so it does not go through what takes colours away.
        let mut text = if self.drawn == 0 { String::new() } else { format!("\x1b[{}A\r\x1b[J", self.drawn) };
        for line in &lines {
            text += line;
            text += "\n";
        }
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let text = if plain { without_colours(&text) } else { text };
        let _unseen = std::io::stderr().lock().write_all(text.as_bytes());
        self.drawn = lines.len();
    }

    /// Leaves what is drawn as it is; the next picture comes below.
    pub(super) fn leave(&mut self) {
        self.drawn = 0;
    }
}

/// How many columns and lines there are to draw on; the last line of the terminal is where the cursor rests.
pub(super) fn size() -> (usize, usize) {
    let (width, height) = terminal_size::terminal_size_of(std::io::stderr()).map_or((80, 24), |(width, height)| (width.0, height.0));
    (usize::from(width), usize::from(height).saturating_sub(1).max(2))
}

/// Lines that fit the terminal: a line that breaks would be two.
fn fitted(lines: &[String], width: usize, height: usize) -> Vec<String> {
    let mut fitted: Vec<String> = lines.iter().map(|line| cut_styled(line, width)).collect();
    if fitted.len() > height {
        let hidden = fitted.len() - height + 1;
        fitted.splice(1..=hidden, [format!("  … {hidden} more above")]);
    }
    fitted
}

/// Cuts what is seen and keeps the styles before that place.
fn cut_styled(line: &str, width: usize) -> String {
    let seen = anstream::adapter::strip_str(line).to_string();
    let short = cut(&seen, width);
    if short == seen {
        return line.into();
    }
    let keep = short.chars().count().saturating_sub(1);
    let (mut text, mut count, mut in_style) = (String::new(), 0, false);
    for c in line.chars() {
        match (in_style, c) {
            (_, '\x1b') => in_style = true,
            (true, 'm') => {
                in_style = false;
                text.push(c);
                continue;
            }
            (true, _) => {}
            (false, _) if count == keep => break,
            (false, _) => count += 1,
        }
        text.push(c);
    }
    text + "…\x1b[0m"
}

fn without_colours(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        plain += &rest[..at];
        let sequence = &rest[at..];
        let end = sequence
            .char_indices()
            .skip(2)
            .find(|(_, c)| c.is_ascii_alphabetic())
            .map_or(sequence.len(), |(end, _)| end + 1);
        if !sequence[..end].ends_with('m') {
            plain += &sequence[..end];
        }
        rest = &sequence[end..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_breaks_and_none_is_beyond_the_height() {
        let lines: Vec<String> = (0..30).map(|at| format!("\x1b[32m{at}\x1b[0m {}", "x".repeat(100))).collect();
        let fitted = fitted(&lines, 40, 10);
        assert_eq!(fitted.len(), 10);
        for line in &fitted {
            assert!(anstream::adapter::strip_str(line).to_string().chars().count() <= 40, "{line:?}");
        }
        assert!(fitted[1].contains("21 more above"), "{:?}", fitted[1]);
        assert!(fitted[9].contains("29"), "{:?}", fitted[9]);
    }

    #[test]
    fn without_colours_the_cursor_still_moves() {
        assert_eq!(without_colours("\x1b[3A\r\x1b[J\x1b[32mok\x1b[0m"), "\x1b[3A\r\x1b[Jok");
    }
}
