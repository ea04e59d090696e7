//! Counts the offenders that a measure finds.

/// A line of a file, and the reason why it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offender {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) note: String,
    /// Further lines that take part, such as the second definition of a name.
    pub(crate) others: Vec<(String, usize)>,
}

impl Offender {
    pub(crate) fn new(path: &str, line: usize, note: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, note: note.into(), others: Vec::new() }
    }
}

impl std::fmt::Display for Offender {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.note)
    }
}

/// The outcome of a measure for one crate, or for several together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) offenders: Vec<Offender>,
    /// The number of things that were looked at, offenders included.
    pub(crate) of: usize,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.offenders.extend_from_slice(&other.offenders);
        self.of += other.of;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Count,
    Percent,
    PerThousand,
}

impl Unit {
    /// The figure in tenths, rounded up.
    pub(crate) fn tenths(self, tally: &Tally) -> usize {
        let offenders = tally.offenders.len();
        match self.per() {
            None => offenders * 10,
            Some(per) => (offenders * per * 10).div_ceil(tally.of.max(1)),
        }
    }

    /// The number of offenders among `of` that a budget in tenths pays for.
    pub(crate) fn affordable(self, tenths: usize, of: usize) -> usize {
        match self.per() {
            None => tenths / 10,
            Some(per) => tenths * of / (per * 10),
        }
    }

    /// The figure as the table shows it.
    pub(crate) fn shown(self, tenths: usize) -> String {
        match self.per() {
            None => (tenths / 10).to_string(),
            Some(_) => format!("{}.{}", tenths / 10, tenths % 10),
        }
    }

    pub(crate) fn is_rate(self) -> bool {
        self.per().is_some()
    }

    fn per(self) -> Option<usize> {
        match self {
            Self::Count => None,
            Self::Percent => Some(100),
            Self::PerThousand => Some(1_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(offenders: usize, of: usize) -> Tally {
        Tally { offenders: vec![Offender::new("a.rs", 1, "x"); offenders], of }
    }

    #[test]
    fn rates_round_up_counts_stay() {
        assert_eq!(Unit::Percent.tenths(&tally(2, 3)), 667);
        assert_eq!(Unit::PerThousand.tenths(&tally(1, 10_001)), 1);
        assert_eq!(Unit::Count.tenths(&tally(3, 3)), 30);
        assert_eq!(Unit::Percent.tenths(&tally(0, 0)), 0);
    }

    #[test]
    fn own_figure_is_always_affordable() {
        for (offenders, of) in [(0, 7), (1, 3), (2, 3), (7, 7), (13, 9_999)] {
            for unit in [Unit::Count, Unit::Percent, Unit::PerThousand] {
                let tally = tally(offenders, of);
                assert!(unit.affordable(unit.tenths(&tally), of) >= offenders, "{offenders} of {of}");
            }
        }
    }

    #[test]
    fn rates_show_one_decimal() {
        assert_eq!([Unit::Count.shown(30), Unit::Percent.shown(667), Unit::PerThousand.shown(5)], ["3", "66.7", "0.5"]);
    }
}
