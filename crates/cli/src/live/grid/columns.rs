//! How stages share the width: by their names, by shortened names, by numbers, or close together without any title.

use crate::output::table::cut;
use unicode_width::UnicodeWidthStr;

/// Between two names.
const GAP: usize = 2;
/// A name that is shorter than this says nothing any more.
const NAME_MIN: usize = 4;

/// The titles of the stages, and how they stand.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// One per stage; empty where there is no room for any.
    pub(super) titles: Vec<String>,
    gap: usize,
    /// The titles are numbers, so that somebody has to say what they stand for.
    pub(super) numbered: bool,
}

impl Columns {
    /// Stages in that many columns of a terminal; without a bound if there is none.
    pub(super) fn fit(stages: &[String], room: Option<usize>) -> Self {
        let room = room.unwrap_or(usize::MAX);
        let whole = Columns { titles: stages.to_vec(), gap: GAP, numbered: false };
        if whole.width() <= room {
            return whole;
        }
        let longest = stages.iter().map(|stage| stage.width()).max().unwrap_or(0);
        for width in (NAME_MIN..=longest).rev() {
            let short = Columns { titles: stages.iter().map(|stage| cut(stage, width)).collect(), gap: 1, numbered: false };
            if short.width() <= room {
                return short;
            }
        }
        let numbers = Columns { titles: (1..=stages.len()).map(|number| number.to_string()).collect(), gap: 1, numbered: true };
        if numbers.width() <= room {
            return numbers;
        }
        Columns { titles: vec![String::new(); stages.len()], gap: 0, numbered: false }
    }

    /// How many columns of the terminal they take.
    pub(super) fn width(&self) -> usize {
        let widths: usize = self.titles.iter().map(|title| title.width().max(1)).sum();
        widths + self.gap * self.titles.len().saturating_sub(1)
    }

    /// What stands behind the sign of a stage, or behind a title.
    pub(super) fn pad(&self, stage: usize, used: usize) -> String {
        let is_last = stage + 1 == self.titles.len();
        " ".repeat(self.titles[stage].width().max(1).saturating_sub(used) + if is_last { 0 } else { self.gap })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(room: usize) -> (String, bool) {
        let stages: Vec<String> = ["drain", "copy", "verify", "switch-over", "clean-up"].map(Into::into).into();
        let columns = Columns::fit(&stages, Some(room));
        assert!(columns.width() <= room.max(5), "{columns:?}");
        (columns.titles.join(" "), columns.numbered)
    }

    #[test]
    fn names_give_way_to_shorter_ones_to_numbers_and_to_nothing() {
        assert_eq!(fit(42), ("drain copy verify switch-over clean-up".into(), false));
        assert_eq!(fit(41), ("drain copy verify switch-over clean-up".into(), false));
        assert_eq!(fit(35), ("drain copy verify switch-… clean-up".into(), false));
        assert_eq!(fit(24), ("dra… copy ver… swi… cle…".into(), false));
        assert_eq!(fit(23), ("1 2 3 4 5".into(), true));
        assert_eq!(fit(8).0.trim(), "");
    }
}
