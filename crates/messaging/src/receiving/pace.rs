//! How long the handlers of a route work before they first wait, as far as that was seen lately.
//!
//! A handler that is short begins where its request is read: a task of its own, and the way to another core, would cost more than the handler. One that takes long there would
//! hold up all that comes over its connection, so a route has to have shown that its handlers are short, and one that was long makes those after it begin in tasks again.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// What is short, with all that it costs to answer: a few times what a task costs.
const SHORT: Duration = Duration::from_micros(10);

/// What a route begins with: after some 70 short ones it is short.
const UNKNOWN: Duration = Duration::from_millis(1);

/// The part that each one has in what is known. One that has taken a second has some 140 short ones begin in tasks after it.
const PART: u64 = 16;

/// A mean in which later ones count more, in nanoseconds. Two that are seen at the same moment may count as one: it is a guess, and nothing but speed depends on it.
pub(super) struct Pace(AtomicU64);

impl Default for Pace {
    fn default() -> Self {
        Pace(AtomicU64::new(nanos(UNKNOWN)))
    }
}

impl Pace {
    /// Whether what begins now is likely to be short.
    pub(super) fn is_short(&self) -> bool {
        self.0.load(Ordering::Relaxed) < nanos(SHORT)
    }

    /// Runs it to its end, and sees how long it works before it first waits.
    pub(super) async fn watch<F: Future>(&self, work: F) -> F::Output {
        let (mut work, mut begins) = (pin!(work), true);
        poll_fn(|context| {
            if !std::mem::take(&mut begins) {
                return work.as_mut().poll(context);
            }
            let begun = Instant::now();
            let first = work.as_mut().poll(context);
            self.took(begun.elapsed());
            first
        })
        .await
    }

    fn took(&self, time: Duration) {
        let mean = self.0.load(Ordering::Relaxed);
        self.0.store(mean - mean / PART + nanos(time) / PART, Ordering::Relaxed);
    }
}

/// Within what can be added up.
fn nanos(time: Duration) -> u64 {
    time.min(Duration::from_secs(3600)).as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many short ones come before the next one begins at once.
    fn short_ones(pace: &Pace) -> usize {
        let begun_in_tasks = (0..10_000).take_while(|_| {
            let in_task = !pace.is_short();
            pace.took(Duration::from_micros(1));
            in_task
        });
        begun_in_tasks.count()
    }

    #[test]
    fn a_route_has_to_show_that_it_is_short() {
        let pace = Pace::default();
        assert_eq!(short_ones(&pace), 73);
        assert!(pace.is_short());
    }

    #[test]
    fn one_that_was_long_makes_those_after_it_begin_in_tasks_and_not_for_ever() {
        let pace = Pace::default();
        short_ones(&pace);
        for (time, expected) in [(Duration::from_micros(100), 0), (Duration::from_millis(1), 30), (Duration::from_secs(1), 140)] {
            pace.took(time);
            let after = short_ones(&pace);
            assert!(after.abs_diff(expected) <= 8, "{after} after {time:?}");
        }
        pace.took(Duration::MAX);
        assert!(short_ones(&pace) < 400, "whatever it was");
    }

    #[test]
    fn handlers_that_are_often_long_never_begin_at_once() {
        let pace = Pace::default();
        for number in 0..10_000 {
            assert!(!pace.is_short(), "{number}");
            pace.took(if number % 50 == 0 { Duration::from_millis(100) } else { Duration::from_micros(1) });
        }
    }

    /// What comes after a wait is no beginning: it holds up nobody.
    #[tokio::test(start_paused = true)]
    async fn only_the_time_before_the_first_wait_counts() {
        let pace = Pace::default();
        for _ in 0..100 {
            pace.watch(tokio::time::advance(Duration::from_secs(1))).await;
        }
        assert!(!pace.is_short());
        for _ in 0..400 {
            pace.watch(async {
                tokio::task::yield_now().await;
                tokio::time::advance(Duration::from_secs(1)).await;
            })
            .await;
        }
        assert!(pace.is_short());
    }
}
