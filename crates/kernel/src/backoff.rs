//! Delays between attempts: pure arithmetic in microseconds that saturates.
//!
//! A delay is never negative and never above the cap, jitter included: chance draws from the part of its window that lies below the cap.

use crate::{Attempt, Jitter, Strategy};
use std::time::Duration;

/// The delay that follows that attempt; `draw` is uniform over all of `u64`.
pub fn delay(strategy: &Strategy, jitter: Jitter, cap: Duration, attempt: Attempt, draw: u64) -> Duration {
    let grown = micros(delay_before_jitter(strategy, cap, attempt));
    let (low, high) = window(strategy, jitter, grown);
    let high = high.min(micros(cap));
    Duration::from_micros(pick(low.min(high), high, draw))
}

/// The delay that follows that attempt, without jitter: it never shrinks from one attempt to the next and never exceeds the cap.
pub fn delay_before_jitter(strategy: &Strategy, cap: Duration, attempt: Attempt) -> Duration {
    let attempt = attempt.max(1);
    let grown = match strategy {
        Strategy::Exponential { base, factor_milli } => exponential(micros(*base), *factor_milli, attempt),
        Strategy::Linear { base } => micros(*base).saturating_mul(u64::from(attempt)),
        Strategy::Constant { base } => micros(*base),
        Strategy::Schedule(delays) => {
            let index = usize::try_from(attempt - 1).unwrap_or(usize::MAX);
            delays.get(index).or_else(|| delays.last()).copied().map_or(0, micros)
        }
    };
    Duration::from_micros(grown.min(micros(cap)))
}

fn exponential(base: u64, factor_milli: u32, attempt: Attempt) -> u64 {
    let power = i32::try_from(attempt - 1).unwrap_or(i32::MAX);
    // A float cast saturates: infinity is u64::MAX. Zero times infinity would be no number, so a zero base stays zero.
    if base == 0 { 0 } else { (base as f64 * (f64::from(factor_milli) / 1000.0).powi(power)) as u64 }
}

/// Where the delay may lie, both ends included.
fn window(strategy: &Strategy, jitter: Jitter, grown: u64) -> (u64, u64) {
    match jitter {
        Jitter::None => (grown, grown),
        Jitter::Additive => (grown, grown.saturating_add((micros(base(strategy)) / 2).saturating_sub(1))),
        Jitter::Proportional(milli) => {
            let part = u64::try_from(u128::from(grown) * u128::from(milli) / 1000).unwrap_or(u64::MAX);
            (grown.saturating_sub(part), grown.saturating_add(part))
        }
        Jitter::Full => (0, grown),
        Jitter::Equal => (grown.div_ceil(2), grown),
    }
}

fn base(strategy: &Strategy) -> Duration {
    match strategy {
        Strategy::Exponential { base, .. } | Strategy::Linear { base } | Strategy::Constant { base } => *base,
        Strategy::Schedule(delays) => delays.first().copied().unwrap_or_default(),
    }
}

/// Maps a uniform draw to `low..=high` by multiplication, which has no modulo bias worth naming and is the same everywhere.
fn pick(low: u64, high: u64, draw: u64) -> u64 {
    let span = u128::from(high - low) + 1;
    low + ((u128::from(draw) * span) >> 64) as u64
}

/// Whole microseconds, rounded up so that a short delay does not become none.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Just, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
    use proptest::strategy::Strategy as _;

    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_secs(60);
    const DOUBLING: Strategy = Strategy::Exponential { base: SECOND, factor_milli: 2000 };

    #[test]
    fn the_seeds_formulas() {
        let at = |strategy: &Strategy, attempt| delay_before_jitter(strategy, MINUTE, attempt).as_secs();
        assert_eq!([1, 2, 3, 4, 5].map(|n| at(&DOUBLING, n)), [1, 2, 4, 8, 16]);
        assert_eq!([1, 2, 3].map(|n| at(&Strategy::Linear { base: SECOND }, n)), [1, 2, 3]);
        let additive = |draw| delay(&DOUBLING, Jitter::Additive, MINUTE, 3, draw);
        assert_eq!(additive(0), 4 * SECOND);
        assert_eq!(additive(u64::MAX), 4 * SECOND + Duration::from_micros(499_999), "half of the base is not reached");
        let spread = |draw| delay(&DOUBLING, Jitter::Proportional(200), MINUTE, 2, draw).as_millis();
        assert_eq!((spread(0), spread(u64::MAX)), (1600, 2400));
    }

    #[test]
    fn exponential_backoff_at_attempt_55_and_above_is_the_cap() {
        for attempt in [55, 56, 64, 65, 1000, u32::MAX] {
            assert_eq!(delay(&DOUBLING, Jitter::Additive, MINUTE, attempt, u64::MAX), MINUTE);
            assert_eq!(delay(&Strategy::Linear { base: MINUTE }, Jitter::Additive, MINUTE, attempt, 7), MINUTE);
            let uncapped = delay(&DOUBLING, Jitter::None, Duration::MAX, attempt, 0);
            assert!(uncapped >= Duration::from_secs(1 << 44), "never negative, never zero: {uncapped:?}");
        }
    }

    #[test]
    fn jitter_of_late_attempts_depends_on_the_current_delay_unless_additive() {
        let spread = |jitter| {
            let at = |draw| delay(&DOUBLING, jitter, 100 * MINUTE, 10, draw);
            at(u64::MAX) - at(0)
        };
        assert!(spread(Jitter::Additive) < SECOND / 2);
        assert!(spread(Jitter::Proportional(200)) >= 200 * SECOND);
        assert!(spread(Jitter::Equal) >= 255 * SECOND);
        assert!(spread(Jitter::Full) >= 511 * SECOND);
    }

    #[test]
    fn many_that_fail_together_spread_out_at_the_cap_too() {
        let drawn: std::collections::BTreeSet<_> =
            (0..1000u64).map(|i| delay(&DOUBLING, Jitter::Proportional(200), MINUTE, 30, i << 54)).collect();
        assert_eq!(drawn.len(), 1000);
        assert!(drawn.iter().all(|delay| (48 * SECOND..=MINUTE).contains(delay)));
    }

    #[test]
    fn sub_millisecond_delays_are_not_rounded_to_zero() {
        let tiny = Strategy::Constant { base: Duration::from_nanos(300) };
        assert_eq!(delay(&tiny, Jitter::None, MINUTE, 1, 0), Duration::from_micros(1));
    }

    fn strategy() -> impl proptest::strategy::Strategy<Value = Strategy> {
        let duration = || prop_oneof![any::<u64>().prop_map(Duration::from_nanos), any::<Duration>()];
        prop_oneof![
            (duration(), 1000..=1_000_000u32).prop_map(|(base, factor_milli)| Strategy::Exponential { base, factor_milli }),
            duration().prop_map(|base| Strategy::Linear { base }),
            duration().prop_map(|base| Strategy::Constant { base }),
            prop::collection::vec(duration(), 1..5).prop_map(|mut delays| {
                delays.sort();
                Strategy::Schedule(delays)
            }),
        ]
    }

    fn jitter() -> impl proptest::strategy::Strategy<Value = Jitter> {
        prop_oneof![
            Just(Jitter::None),
            Just(Jitter::Additive),
            (0..=1000u32).prop_map(Jitter::Proportional),
            Just(Jitter::Full),
            Just(Jitter::Equal),
        ]
    }

    proptest! {
        #[test]
        fn never_above_the_cap(s in strategy(), j in jitter(), cap: u64, attempt: u32, draw: u64) {
            let cap = Duration::from_micros(cap);
            prop_assert!(delay(&s, j, cap, attempt, draw) <= cap);
        }

        #[test]
        fn monotone_without_jitter(s in strategy(), cap: u64, attempt in 1..u32::MAX) {
            let cap = Duration::from_micros(cap);
            prop_assert!(delay_before_jitter(&s, cap, attempt) <= delay_before_jitter(&s, cap, attempt + 1));
            prop_assert!(delay_before_jitter(&s, cap, attempt % 100) <= delay_before_jitter(&s, cap, attempt % 100 + 1));
        }

        #[test]
        fn same_draw_same_delay_and_larger_draw_no_smaller_delay(s in strategy(), j in jitter(), attempt: u32, a: u64, b: u64) {
            let at = |draw| delay(&s, j, MINUTE, attempt, draw);
            prop_assert_eq!(at(a), at(a));
            prop_assert!(at(a.min(b)) <= at(a.max(b)));
        }

        #[test]
        fn a_base_above_zero_never_gives_zero_without_full_jitter(base in 1..u64::MAX, attempt: u32, draw: u64) {
            let s = Strategy::Exponential { base: Duration::from_micros(base), factor_milli: 2000 };
            for j in [Jitter::None, Jitter::Additive, Jitter::Equal, Jitter::Proportional(200)] {
                prop_assert!(delay(&s, j, MINUTE, attempt, draw) > Duration::ZERO);
            }
        }
    }
}
