//! The time axis: from milliseconds to days.

use crate::pages::words;
use std::time::Duration;
use steadfast_kernel::Timestamp;

/// Distances between ticks that people count in, in microseconds.
const STEPS: [u64; 27] = [
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
    900_000_000,
    3_600_000_000,
    10_800_000_000,
    43_200_000_000,
    86_400_000_000,
    172_800_000_000,
    604_800_000_000,
    2_592_000_000_000,
];

/// No more ticks than that.
const TICKS_MAX: u64 = 6;

/// A stretch of time, laid out from 0 to 100 per cent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    from: Timestamp,
    to: Timestamp,
}

impl Axis {
    /// Never of no length.
    pub(super) fn new(from: Timestamp, to: Timestamp) -> Self {
        Axis { from, to: to.max(from.saturating_add(Duration::from_micros(1_000))) }
    }

    /// Where a time is, in per cent; at an end if it is beyond it.
    pub(super) fn place(&self, at: Timestamp) -> f64 {
        let share = at.saturating_since(self.from).as_secs_f64() / self.to.saturating_since(self.from).as_secs_f64();
        share.clamp(0.0, 1.0) * 100.0
    }

    /// Whether it ends before that time.
    pub(super) fn is_before(&self, at: Timestamp) -> bool {
        self.to < at
    }

    /// Places with what to write there.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let length = u64::try_from(self.to.saturating_since(self.from).as_micros()).unwrap_or(u64::MAX);
        let fits = |step: &&u64| length / **step <= TICKS_MAX;
        let step = STEPS.iter().find(fits).copied().unwrap_or(length / TICKS_MAX);
        let ticks = (0..=length / step).map(|tick| tick * step);
        ticks.map(|at| (at as f64 / length as f64 * 100.0, label(Duration::from_micros(at)))).collect()
    }
}

fn label(duration: Duration) -> String {
    if duration.is_zero() { "0".into() } else { words::lasted(duration).replace(".0 ", " ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(length: Duration) -> Vec<String> {
        let from = Timestamp::from_micros(1_700_000_000_000_000);
        Axis::new(from, from.saturating_add(length)).ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_counted_in_units_of_people() {
        assert_eq!(labels(Duration::from_millis(12)), ["0", "2 ms", "4 ms", "6 ms", "8 ms", "10 ms", "12 ms"]);
        assert_eq!(labels(Duration::from_millis(4_100)), ["0", "1 s", "2 s", "3 s", "4 s"]);
        assert_eq!(labels(Duration::from_secs(150)), ["0", "30 s", "1 min", "1 min 30 s", "2 min", "2 min 30 s"]);
        assert_eq!(labels(Duration::from_secs(3 * 86_400)), ["0", "12 h", "1 d", "1 d 12 h", "2 d", "2 d 12 h", "3 d"]);
        assert!(labels(Duration::from_secs(400 * 86_400)).len() <= 14);
        assert_eq!(labels(Duration::ZERO), ["0", "200 µs", "400 µs", "600 µs", "800 µs", "1 ms"], "an axis has a length");
    }

    #[test]
    fn places_are_within_the_axis() {
        let at = |micros: i64| Timestamp::from_micros(1_700_000_000_000_000 + micros);
        let axis = Axis::new(at(0), at(4_000));
        assert_eq!([at(-5), at(0), at(1_000), at(4_000), at(9_000)].map(|at| axis.place(at)), [0.0, 0.0, 25.0, 100.0, 100.0]);
        assert!(axis.is_before(at(4_001)) && !axis.is_before(at(4_000)));
    }
}
