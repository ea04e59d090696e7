//! How many retries a peer gets: a part of the traffic, so that retries never become the load that keeps a peer down.
//!
//! A retry that finds nothing left is not refused: it gets a time in the future, one after the other. Only if that is too late for it, it is given up. If it is not sent after all, it gives its turn back.
//! What was never sent costs nothing, and neither does the first time that a request comes again because its connection was cut: those are as many as were
//! under way, and the new connection takes them as fast as the other side reads.

use std::time::Duration;
use tokio::time::Instant;

/// What a first send adds, in thousandths of a retry: 10 % of the traffic.
const PER_SEND: i64 = 100;

/// How long a thousandth of a retry takes to come back by itself: ten retries a second, so that somebody who sends little may retry as well.
const REFILL: Duration = Duration::from_micros(100);

/// The most that is saved up, in thousandths of a retry: 100 of them, and what a new peer begins with.
const SAVED_MAX: i64 = 100_000;

const RETRY: i64 = 1000;

/// The budget of one peer.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Below zero if retries have a time in the future.
    saved: i64,
    looked_at: Instant,
}

impl Budget {
    pub(crate) fn new(now: Instant) -> Self {
        Budget { saved: SAVED_MAX, looked_at: now }
    }

    /// A request is sent for the first time.
    pub(crate) fn sent(&mut self) {
        self.saved = (self.saved + PER_SEND).min(SAVED_MAX);
    }

    /// A request is sent again by somebody who has waited already, and waits for no turn: those who come after it wait for longer, but not without end.
    pub(crate) fn spend(&mut self, now: Instant) {
        self.refill(now);
        self.saved = (self.saved - RETRY).max(self.saved.min(-SAVED_MAX));
    }

    /// When there is a retry for somebody whose time ends then; nothing if that would be too late.
    pub(crate) fn reserve(&mut self, now: Instant, ends_at: Instant) -> Option<Instant> {
        self.refill(now);
        let missing = u32::try_from((RETRY - self.saved).max(0)).unwrap_or(u32::MAX);
        let at = now + REFILL * missing;
        (at < ends_at).then(|| {
            self.saved -= RETRY;
            at
        })
    }

    /// A retry that was reserved is not sent.
    pub(crate) fn give_back(&mut self) {
        self.saved = (self.saved + RETRY).min(SAVED_MAX);
    }

    /// Adds what has come back by itself.
    fn refill(&mut self, now: Instant) {
        let earned = now.saturating_duration_since(self.looked_at).as_micros() / REFILL.as_micros();
        let missing = SAVED_MAX - self.saved; // after a storm that may be hours' worth
        match i64::try_from(earned) {
            Ok(earned) if earned < missing => {
                self.saved += earned;
                self.looked_at += Duration::from_micros(earned.unsigned_abs() * REFILL.as_micros() as u64);
            }
            _ => (self.saved, self.looked_at) = (SAVED_MAX, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at_once(budget: &mut Budget, now: Instant) -> usize {
        (0..1000).take_while(|_| budget.reserve(now, now + Duration::from_nanos(1)).is_some()).count()
    }

    #[test]
    fn retries_are_a_tenth_of_the_traffic_beyond_the_floor() {
        let now = Instant::now();
        let mut budget = Budget::new(now);
        assert_eq!(at_once(&mut budget, now), 100);
        (0..500).for_each(|_| budget.sent());
        assert_eq!(at_once(&mut budget, now), 50);
    }

    #[test]
    fn somebody_who_sends_nothing_may_retry_ten_times_a_second() {
        let now = Instant::now();
        let mut budget = Budget::new(now);
        at_once(&mut budget, now);
        assert_eq!(at_once(&mut budget, now + Duration::from_secs(3)), 30);
        assert_eq!(at_once(&mut budget, now + HOUR), 100, "what is saved up has a bound");
    }

    #[test]
    fn who_does_not_wait_for_a_turn_makes_others_wait_and_not_without_end() {
        let now = Instant::now();
        let mut budget = Budget::new(now);
        (0..150).for_each(|_| budget.spend(now));
        let wait = |budget: &mut Budget| budget.reserve(now, now + HOUR).map(|at| at - now);
        assert_eq!(wait(&mut budget), Some(Duration::from_millis(5100)), "50 that have no turn yet, and this one");
        (0..100_000).for_each(|_| budget.spend(now));
        assert_eq!(wait(&mut budget), Some(Duration::from_millis(10_100)));
        let far: Vec<_> = std::iter::from_fn(|| budget.reserve(now, now + Duration::from_secs(60))).collect();
        budget.spend(now);
        assert_eq!(
            wait(&mut budget).map(|wait| now + wait),
            far.last().map(|at| *at + Duration::from_millis(100)),
            "nobody gets nearer by that"
        );
    }

    #[test]
    fn what_a_storm_has_used_up_comes_back_in_its_time() {
        let now = Instant::now();
        let mut budget = Budget::new(now);
        for _ in 0..10_000 {
            assert!(budget.reserve(now, now + HOUR).is_some(), "the last one has its turn in 990 seconds");
        }
        assert_eq!(at_once(&mut budget, now + Duration::from_secs(985)), 0, "those before it are not done");
        assert_eq!(at_once(&mut budget, now + Duration::from_secs(995)), 50);
        assert_eq!(at_once(&mut budget, now + HOUR), 100);
    }

    #[test]
    fn what_is_given_back_is_there_for_the_next_and_no_more_than_that() {
        let now = Instant::now();
        let mut budget = Budget::new(now);
        at_once(&mut budget, now);
        (0..7).for_each(|_| budget.give_back());
        assert_eq!(at_once(&mut budget, now), 7);
        (0..1000).for_each(|_| budget.give_back());
        assert_eq!(at_once(&mut budget, now), 100, "what is saved up has a bound");
    }

    #[test]
    fn in_a_storm_retries_come_one_after_the_other_and_none_too_late() {
        let now = Instant::now();
        let mut budget = Budget::new(now);
        at_once(&mut budget, now);
        let ends_at = now + Duration::from_secs(5);
        let times: Vec<_> = std::iter::from_fn(|| budget.reserve(now, ends_at)).collect();
        assert_eq!(times.len(), 49, "ten a second for five seconds, the end not included");
        assert!(times.is_sorted() && times.iter().all(|at| *at < ends_at));
        assert_eq!(times[9] - times[8], Duration::from_millis(100));
    }
}
