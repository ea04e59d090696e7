//! A point in time, in microseconds, that saturates instead of overflowing.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A point in time in UTC, to the microsecond.
///
/// Arithmetic saturates at [`Timestamp::MAX`] (the end of the year 9999), so that a delay of any size gives a time that can be printed,
/// stored and compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The start of 1970.
    pub const EPOCH: Timestamp = Timestamp(0);
    /// The end of the year 9999: "never". Two days before it, so that it can be shown in every time zone.
    pub const MAX: Timestamp = Timestamp(253_402_207_200_000_000);

    /// The time that many microseconds after the start of 1970. Times before it are taken as it, times after [`Timestamp::MAX`] as that.
    pub fn from_micros(micros: i64) -> Self {
        Timestamp(micros.clamp(0, Self::MAX.0))
    }

    /// Microseconds since the start of 1970.
    pub fn as_micros(self) -> i64 {
        self.0
    }

    /// This time plus a duration; a part of a microsecond counts as a whole one, so that nothing is ever early.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(i64::MAX);
        Self::from_micros(self.0.saturating_add(micros))
    }

    /// How long after `earlier` this time is; zero if it is not.
    pub fn saturating_since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

/// RFC 3339 in UTC, with as many digits as the time needs.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => time.fmt(f),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_durations_saturate_and_can_be_printed() {
        let far = Timestamp::from_micros(1).saturating_add(Duration::MAX);
        assert_eq!(far, Timestamp::MAX);
        assert_eq!(far.to_string(), "9999-12-30T22:00:00Z");
        assert_eq!(Timestamp::from_micros(-5), Timestamp::EPOCH);
    }

    #[test]
    fn parts_of_a_microsecond_are_never_early() {
        let due = Timestamp::EPOCH.saturating_add(Duration::from_nanos(1));
        assert_eq!(due.as_micros(), 1);
    }

    #[test]
    fn earlier_times_are_no_time_ago() {
        let (early, late) = (Timestamp::from_micros(3), Timestamp::from_micros(10));
        assert_eq!(late.saturating_since(early), Duration::from_micros(7));
        assert_eq!(early.saturating_since(late), Duration::ZERO);
    }
}
