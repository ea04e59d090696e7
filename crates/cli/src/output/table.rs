//! Tables that fit the width of the terminal. What can be copied is never cut; the rest gives way, or goes on in the next line.

use super::style;
use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Between two columns.
const GAP: usize = 2;
/// Below this a column says nothing any more.
const WIDTH_MIN: usize = 8;
/// A last column that would go on in lines shorter than this stands below its row instead.
const WRAP_MIN: usize = 36;
/// How far what stands below a row is moved to the right.
const INDENT: usize = 4;

/// What happens to a cell that has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Whole,
    Cut,
    Wrap,
    Spare,
}

/// A column: its title, and what happens when there is no room for it.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    title: &'static str,
    fit: Fit,
}

impl Column {
    /// Never cut, so that it can be copied.
    pub(crate) fn whole(title: &'static str) -> Self {
        Column { title, fit: Fit::Whole }
    }

    /// Cut with `…`.
    pub(crate) fn cut(title: &'static str) -> Self {
        Column { title, fit: Fit::Cut }
    }

    /// Left out if there is no room for what matters more.
    pub(crate) fn spare(title: &'static str) -> Self {
        Column { title, fit: Fit::Spare }
    }

    /// Goes on in the next line.
    pub(crate) fn wrap(title: &'static str) -> Self {
        Column { title, fit: Fit::Wrap }
    }
}

/// A cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// The status of something, in its style.
    pub(crate) fn status(status: &str) -> Self {
        Cell { text: status.into(), style: style::of_status(status) }
    }

    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Cell { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        // A cell is one line; what comes from outside may have more, or steer the terminal.
        Cell { text: super::plain(&text.into()), style: style::PLAIN }
    }
}

/// Rows under titles.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Table { columns, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The table for whoever reads stdout.
    pub(crate) fn to_text(&self) -> String {
        self.within(width_of_terminal())
    }

    /// The table in that many columns of a terminal; without a bound if there is no terminal. Columns in which nothing stands are left out.
    pub(crate) fn within(&self, width: Option<usize>) -> String {
        let in_use = |at: &usize| self.rows.iter().any(|row| !row[*at].text.is_empty());
        let mut used: Vec<usize> = (0..self.columns.len()).filter(in_use).collect();
        let (below, beside, widths) = loop {
            let widths = self.widths(&used, width);
            let below = self.below(&used, &widths);
            let beside = &used[..used.len() - below.iter().count()];
            let widths = self.widths(beside, width);
            let too_wide = width.is_some_and(|width| total(&widths) > width);
            match used.iter().rposition(|at| self.columns[*at].fit == Fit::Spare).filter(|_| too_wide) {
                Some(spare) => drop(used.remove(spare)),
                None => break (below, beside.to_vec(), widths),
            }
        };
        let titles: Vec<Cell> = self.columns.iter().map(|column| Cell::styled(column.title, style::FAINT)).collect();
        let mut lines = Vec::new();
        self.lines(&titles, &beside, &widths, &mut lines);
        for row in &self.rows {
            self.lines(row, &beside, &widths, &mut lines);
            if let Some(at) = below.filter(|at| !row[*at].text.is_empty()) {
                let room = width.unwrap_or(usize::MAX).saturating_sub(INDENT);
                let parts = if self.columns[at].fit == Fit::Wrap { wrap(&row[at].text, room) } else { vec![cut(&row[at].text, room)] };
                lines.extend(parts.iter().map(|part| style::paint(style::FAINT, format_args!("{}{part}", " ".repeat(INDENT)))));
            }
        }
        lines.join("\n")
    }

    /// The last column, if it has too little room beside the others.
    fn below(&self, used: &[usize], widths: &[usize]) -> Option<usize> {
        let (at, width) = (*used.last()?, *widths.last()?);
        let natural = self.rows.iter().map(|row| row[at].text.width()).max().unwrap_or(0);
        (used.len() > 1 && matches!(self.columns[at].fit, Fit::Cut | Fit::Wrap) && width < natural.min(WRAP_MIN)).then_some(at)
    }

    /// How wide each column is. The widest that may give way gives way first.
    fn widths(&self, used: &[usize], width: Option<usize>) -> Vec<usize> {
        let natural = |at: &usize| {
            self.rows
                .iter()
                .map(|row| row[*at].text.width())
                .max()
                .unwrap_or(0)
                .max(self.columns[*at].title.width())
        };
        let mut widths: Vec<usize> = used.iter().map(natural).collect();
        let Some(width) = width else { return widths };
        while total(&widths) > width {
            let flexible =
                (0..used.len()).filter(|at| matches!(self.columns[used[*at]].fit, Fit::Cut | Fit::Wrap) && widths[*at] > WIDTH_MIN);
            let Some(widest) = flexible.max_by_key(|at| widths[*at]) else { break };
            widths[widest] -= 1;
        }
        widths
    }

    /// The lines of one row: several if a cell goes on.
    fn lines(&self, row: &[Cell], used: &[usize], widths: &[usize], lines: &mut Vec<String>) {
        let parts: Vec<Vec<String>> = used
            .iter()
            .zip(widths)
            .map(|(at, width)| match self.columns[*at].fit {
                Fit::Whole | Fit::Spare => vec![row[*at].text.clone()],
                Fit::Cut => vec![cut(&row[*at].text, *width)],
                Fit::Wrap => wrap(&row[*at].text, *width),
            })
            .collect();
        for line in 0..parts.iter().map(Vec::len).max().unwrap_or(0) {
            let mut text = String::new();
            for ((part, at), width) in parts.iter().zip(used).zip(widths) {
                let part = part.get(line).map_or("", String::as_str);
                let pad = width.saturating_sub(part.width()) + GAP;
                text += &style::paint(row[*at].style, part);
                text += &" ".repeat(pad);
            }
            lines.push(trimmed(&text));
        }
    }
}

/// How much of a line columns of these widths take.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Without the spaces at the end, which stand behind the last style.
fn trimmed(text: &str) -> String {
    text.trim_end().into()
}

/// The width of the terminal that shows stdout, if one does.
pub(crate) fn width_of_terminal() -> Option<usize> {
    size_of_terminal().map(|(width, _)| width)
}

/// The width and the height of the terminal that shows stdout, if one does.
pub(crate) fn size_of_terminal() -> Option<(usize, usize)> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, height)| (width.0.into(), height.0.into()))
}

/// That text in that many columns, with `…` in the place of what is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.into();
    }
    let mut short = String::new();
    let mut room = width.saturating_sub(1);
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if wide > room {
            break;
        }
        room -= wide;
        short.push(c);
    }
    short.trim_end().to_owned() + "…"
}

/// That text in lines of that many columns, between words where it can be.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word = word.to_owned();
        let used = lines.last().map_or(0, |line| line.width());
        if used > 0 && used + 1 + word.width() > width {
            lines.push(String::new());
        } else if used > 0 {
            word.insert(0, ' ');
        }
        for c in word.chars() {
            if lines.last().is_some_and(|line| line.width() + c.width().unwrap_or(0) > width.max(1)) {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                line.push(c);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn table() -> Table {
        let mut table = Table::new(vec![Column::whole("ID"), Column::cut("WORKFLOW"), Column::cut("NOTHING"), Column::wrap("WHY")]);
        table.row(vec![
            "0199-aaaa-bbbb-cccc".into(),
            "a-workflow-with-a-long-name".into(),
            "".into(),
            "it waits for the word of a person".into(),
        ]);
        table.row(vec!["short".into(), "b".into(), "".into(), "".into()]);
        table
    }

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        let text = plain(&table().within(None));
        assert!(text.contains("0199-aaaa-bbbb-cccc  a-workflow-with-a-long-name  it waits for the word of a person"), "{text}");
        assert!(!text.contains("NOTHING"), "an empty column takes no room: {text}");
    }

    #[test]
    fn a_table_fits_its_width_and_ids_stay_whole() {
        for width in [40, 50, 60, 80] {
            let text = plain(&table().within(Some(width)));
            assert!(text.lines().all(|line| line.width() <= width), "{width}:\n{text}");
            assert!(text.contains("0199-aaaa-bbbb-cccc"), "{text}");
        }
        let text = plain(&table().within(Some(45)));
        assert!(text.contains("a-workflow-with-a-long-…"), "{text}");
        assert!(text.contains("\n    it waits for the word of a person\n"), "what has no room stands below: {text}");
    }

    #[test]
    fn what_can_be_spared_gives_way_from_the_right() {
        let mut table = Table::new(vec![Column::whole("ID"), Column::spare("A"), Column::spare("B"), Column::cut("WHY")]);
        table.row(vec!["0123456789".into(), "aaaaaaaaaa".into(), "bbbbbbbbbb".into(), "because of something that takes many words".into()]);
        let at = |width| plain(&table.within(Some(width)));
        assert!(at(34).contains("aaaaaaaaaa") && at(34).contains("bbbbbbbbbb"), "{}", at(34));
        assert!(at(33).contains("aaaaaaaaaa") && !at(33).contains("bbbbbbbbbb"), "{}", at(33));
        assert!(!at(20).contains("aaaaaaaaaa") && at(20).contains("0123456789"), "{}", at(20));
    }

    #[test]
    fn what_wraps_loses_nothing() {
        let lines = wrap("it waits for the word of a person", 9);
        assert!(lines.iter().all(|line| line.width() <= 9), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), "itwaitsforthewordofaperson");
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
    }

    #[test]
    fn wide_letters_count_twice_and_control_letters_not_at_all() {
        assert_eq!(cut("日本語テキスト", 7), "日本語…");
        let cell: Cell = "a\u{1b}[31mb\nc".into();
        assert_eq!(cell.text, "a [31mb c");
    }
}
