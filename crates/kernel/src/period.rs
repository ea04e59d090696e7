//! Times that repeat with a fixed phase.

use crate::Timestamp;
use std::num::NonZeroU64;
use std::time::Duration;

/// A period with an origin. The next time is always a whole number of periods after the origin, however late the last one was noticed, so nothing drifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    origin: Timestamp,
    micros: NonZeroU64,
}

impl Period {
    /// That often, counted from there; nothing if it is less than a microsecond.
    pub fn new(origin: Timestamp, every: Duration) -> Option<Self> {
        let micros = u64::try_from(every.as_micros()).unwrap_or(u64::MAX);
        NonZeroU64::new(micros).map(|micros| Period { origin, micros })
    }

    /// Which of the times is the last one up to now, counted from the origin, which is number 0.
    pub fn number(&self, now: Timestamp) -> u64 {
        u64::try_from(now.saturating_since(self.origin).as_micros()).unwrap_or(u64::MAX) / self.micros
    }

    /// The time of that number.
    pub fn at(&self, number: u64) -> Timestamp {
        self.origin.saturating_add(Duration::from_micros(number.saturating_mul(self.micros.get())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_period_keeps_its_phase_however_late_somebody_looks() {
        let period = Period::new(at(100), Duration::from_secs(10)).unwrap();
        for (now, number) in [(50, 0), (100, 0), (109, 0), (110, 1), (119, 1), (1_234, 113)] {
            assert_eq!(period.number(at(now)), number, "at {now}");
        }
        assert_eq!([0, 1, 113].map(|number| period.at(number)), [at(100), at(110), at(1_230)]);
    }

    #[test]
    fn odd_periods_saturate_or_are_refused() {
        assert_eq!(Period::new(at(0), Duration::from_nanos(999)), None);
        let never = Period::new(at(1), Duration::MAX).unwrap();
        assert_eq!((never.number(Timestamp::MAX), never.at(1), never.at(u64::MAX)), (0, Timestamp::MAX, Timestamp::MAX));
    }
}
