//! What follows a failed attempt. One type serves steps, stages, sends and callbacks.

mod stored;

use crate::backoff;
use crate::{Attempt, Class, Code, Failure, Timestamp};
use std::time::Duration;

/// How the delay grows from one attempt to the next. See [`backoff::delay_before_jitter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// `base · factor^(attempt − 1)`; the factor is kept in thousandths.
    Exponential {
        /// The delay after the first attempt.
        base: Duration,
        /// The growth from one delay to the next, in thousandths; at least 1000.
        factor_milli: u32,
    },
    /// `base · attempt`.
    Linear {
        /// The delay after the first attempt and what each further one adds.
        base: Duration,
    },
    /// Always `base`.
    Constant {
        /// The delay after every attempt.
        base: Duration,
    },
    /// The delays one by one; the last one repeats.
    Schedule(Vec<Duration>),
}

/// How chance spreads the delays, so that many that failed together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// Not at all.
    None,
    /// Adds `[0, base / 2)`, whatever the delay has grown to.
    Additive,
    /// Plus or minus that part of the delay, in thousandths (200 is ±20 %).
    Proportional(u32),
    /// Anything from zero to the delay.
    Full,
    /// Half of the delay, and anything up to the other half.
    Equal,
}

/// What the policy says after a failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Try again.
    RetryIn {
        /// After that delay.
        delay: Duration,
        /// How many attempts there are in all.
        of: Attempt,
    },
    /// No further attempt.
    GiveUp(GaveUp),
}

/// Why there is no further attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaveUp {
    /// The failure is permanent.
    Permanent,
    /// The failure is poison: a person has to look at it.
    Poison,
    /// All attempts are used up.
    MaxRetriesExceeded {
        /// How many there were.
        max: u32,
    },
    /// The next attempt would begin after the deadline.
    OutOfTime,
}

impl GaveUp {
    /// The failure that the caller sees, made from that of the last attempt.
    pub fn failure(self, last: Failure, attempts: Attempt) -> Failure {
        let last = Failure { attempts, ..last };
        match self {
            GaveUp::Permanent | GaveUp::Poison => last,
            GaveUp::MaxRetriesExceeded { max } => Failure::max_retries_exceeded(max, last),
            GaveUp::OutOfTime => Failure::out_of_time(last),
        }
    }
}

/// A policy that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPolicy {
    /// No attempt at all is allowed.
    #[error("max_attempts is 0, but it counts all attempts: 1 means one call and no retry")]
    NoAttempts,
    /// Delays would shrink, or the factor is no number.
    #[error("factor must be a number from 1 to 1000")]
    Factor,
    /// A schedule without entries.
    #[error("a schedule needs at least one delay")]
    EmptySchedule,
    /// More than the whole delay, or no number.
    #[error("proportional jitter must be between 0 and 1 (0.2 is ±20 %)")]
    Jitter,
}

/// What follows a failed attempt: again after a delay, or not.
///
/// `max_attempts` counts **all** attempts. Permanent and poison failures are not retried, unless [`on`](Policy::on) names a permanent one.
/// A `retry_after` of the failure is honoured up to `max_delay`.
///
/// ```
/// use std::time::Duration;
/// use steadfast_kernel::{Code, Policy};
///
/// let policy = Policy::exponential(Duration::from_secs(1))
///     .max_attempts(5)
///     .max_delay(Duration::from_secs(30))
///     .deadline(Duration::from_secs(120))
///     .on(Code::ResourceExhausted, Policy::constant(Duration::from_secs(20)).max_attempts(10));
/// assert_eq!(policy.attempts_max(), 5);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Policy {
    max_attempts: u32,
    strategy: Strategy,
    max_delay: Duration,
    jitter: Jitter,
    attempt_timeout: Option<Duration>,
    deadline: Option<Duration>,
    overrides: Vec<(When, Policy)>,
}

/// Which failures an override is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All of that class.
    Class(Class),
    /// All of that code; goes before the class.
    Code(Code),
}

impl From<Class> for When {
    fn from(class: Class) -> Self {
        When::Class(class)
    }
}

impl From<Code> for When {
    fn from(code: Code) -> Self {
        When::Code(code)
    }
}

/// Five attempts, exponential from one second, at most a minute apart, additive jitter.
impl Default for Policy {
    fn default() -> Self {
        Policy::exponential(Duration::from_secs(1))
    }
}

impl Policy {
    /// Delays that double: `base · 2^(attempt − 1)` plus `[0, base / 2)`; five attempts, at most a minute apart.
    pub fn exponential(base: Duration) -> Self {
        Policy::with(Strategy::Exponential { base, factor_milli: 2000 })
    }

    /// Delays that grow by `base` each time, plus `[0, base / 2)`; five attempts, at most a minute apart.
    pub fn linear(base: Duration) -> Self {
        Policy::with(Strategy::Linear { base })
    }

    /// Always the same delay, without jitter; five attempts.
    pub fn constant(base: Duration) -> Self {
        Policy { jitter: Jitter::None, max_delay: base, ..Policy::with(Strategy::Constant { base }) }
    }

    /// The delays one by one, without jitter; one attempt more than there are delays.
    ///
    /// # Panics
    /// If there is no delay; [`Policy::validate`] is for policies that come from data.
    #[track_caller]
    pub fn schedule(delays: impl Into<Vec<Duration>>) -> Self {
        let delays = delays.into();
        assert!(!delays.is_empty(), "{}", InvalidPolicy::EmptySchedule);
        let max_attempts = u32::try_from(delays.len()).unwrap_or(u32::MAX).saturating_add(1);
        let max_delay = delays.iter().copied().max().unwrap_or_default();
        Policy { max_attempts, max_delay, jitter: Jitter::None, ..Policy::with(Strategy::Schedule(delays)) }
    }

    /// For sends over a network: 3 attempts, 1 s, doubling, at most 5 s, ±20 %.
    pub fn transient() -> Self {
        Policy { max_attempts: 3, max_delay: Duration::from_secs(5), jitter: Jitter::Proportional(200), ..Policy::default() }
    }

    /// One attempt and no retry.
    pub fn once() -> Self {
        Policy { max_attempts: 1, ..Policy::default() }
    }

    fn with(strategy: Strategy) -> Self {
        Policy {
            max_attempts: 5,
            strategy,
            max_delay: Duration::from_secs(60),
            jitter: Jitter::Additive,
            attempt_timeout: None,
            deadline: None,
            overrides: Vec::new(),
        }
    }

    /// How many attempts there are in all, the first included.
    ///
    /// # Panics
    /// If it is 0: there would be no attempt at all. [`Policy::validate`] is for policies that come from data.
    #[track_caller]
    pub fn max_attempts(mut self, max: u32) -> Self {
        assert!(max > 0, "{}", InvalidPolicy::NoAttempts);
        self.max_attempts = max;
        self
    }

    /// The growth of an exponential policy, to the thousandth; has no meaning for others.
    ///
    /// # Panics
    /// If it is below 1, above 1000, or no number.
    #[track_caller]
    pub fn factor(mut self, factor: f64) -> Self {
        assert!((1.0..=1000.0).contains(&factor), "{}", InvalidPolicy::Factor);
        if let Strategy::Exponential { factor_milli, .. } = &mut self.strategy {
            *factor_milli = (factor * 1000.0).round() as u32;
        }
        self
    }

    /// No delay is longer, jitter and `retry_after` included.
    pub fn max_delay(mut self, max: Duration) -> Self {
        self.max_delay = max;
        self
    }

    /// How chance spreads the delays.
    ///
    /// # Panics
    /// If it is proportional and more than the whole delay.
    #[track_caller]
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        assert!(self.validate() != Err(InvalidPolicy::Jitter), "{}", InvalidPolicy::Jitter);
        self
    }

    /// How long one attempt may take; one that takes longer has failed with `DEADLINE_EXCEEDED`.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// How long all attempts may take together, the waits between them included. It counts from the moment the code asks for the step, so time
    /// during which no process runs counts too.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// What to do about failures of one class or code instead. The attempts are counted together; deadline and timeout stay those of the
    /// whole. A code goes before its class. Naming a permanent class or code makes it be retried; poison never is.
    pub fn on(mut self, when: impl Into<When>, policy: Policy) -> Self {
        let when = when.into();
        self.overrides.retain(|(other, _)| *other != when);
        self.overrides.push((when, Policy { overrides: Vec::new(), ..policy }));
        self
    }

    /// Checks what the builder methods check, for policies that were put together from data.
    ///
    /// # Errors
    /// [`InvalidPolicy`] says what is wrong.
    pub fn validate(&self) -> Result<(), InvalidPolicy> {
        if self.max_attempts == 0 {
            return Err(InvalidPolicy::NoAttempts);
        }
        match &self.strategy {
            Strategy::Exponential { factor_milli: ..1000 | 1_000_001.., .. } => return Err(InvalidPolicy::Factor),
            Strategy::Schedule(delays) if delays.is_empty() => return Err(InvalidPolicy::EmptySchedule),
            _ => {}
        }
        if matches!(self.jitter, Jitter::Proportional(1001..)) {
            return Err(InvalidPolicy::Jitter);
        }
        self.overrides.iter().try_for_each(|(_, policy)| policy.validate())
    }

    /// How many attempts there are in all.
    pub fn attempts_max(&self) -> u32 {
        self.max_attempts
    }

    /// How long one attempt may take.
    pub fn attempt_timeout_for(&self) -> Option<Duration> {
        self.attempt_timeout
    }

    /// When all attempts must be over, if the first could begin at `since`.
    pub fn deadline_at(&self, since: Timestamp) -> Option<Timestamp> {
        self.deadline.map(|deadline| since.saturating_add(deadline))
    }

    /// What follows the failure of that attempt. `draw` decides the jitter; `out_of_time` is when the whole must be over.
    pub fn after(&self, attempt: Attempt, failure: &Failure, now: Timestamp, out_of_time: Option<Timestamp>, draw: u64) -> Verdict {
        let named = self.named(failure);
        match (failure.class, named) {
            (Class::Poison, _) => return Verdict::GiveUp(GaveUp::Poison),
            (Class::Permanent, None) => return Verdict::GiveUp(GaveUp::Permanent),
            _ => {}
        }
        let policy = named.unwrap_or(self);
        if attempt >= policy.max_attempts {
            return Verdict::GiveUp(GaveUp::MaxRetriesExceeded { max: policy.max_attempts });
        }
        let delay = policy.delay(attempt, draw).max(failure.retry_after.unwrap_or_default()).min(policy.max_delay);
        let delay = Duration::from_micros(backoff::micros(delay)); // what the journal keeps, so that replay knows the same delay
        match out_of_time {
            Some(end) if now.saturating_add(delay) >= end => Verdict::GiveUp(GaveUp::OutOfTime),
            _ => Verdict::RetryIn { delay, of: policy.max_attempts },
        }
    }

    /// The delay after that attempt, drawn by `draw`.
    pub fn delay(&self, attempt: Attempt, draw: u64) -> Duration {
        backoff::delay(&self.strategy, self.jitter, self.max_delay, attempt, draw)
    }

    fn named(&self, failure: &Failure) -> Option<&Policy> {
        let find = |when: When| self.overrides.iter().find(|(other, _)| *other == when).map(|(_, policy)| policy);
        find(When::Code(failure.code)).or_else(|| find(When::Class(failure.class)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const NOW: Timestamp = Timestamp::EPOCH;

    /// The delay, or why there is none.
    fn after(policy: &Policy, attempt: Attempt, failure: Failure) -> Result<Duration, GaveUp> {
        match policy.after(attempt, &failure, NOW, policy.deadline_at(NOW), 0) {
            Verdict::RetryIn { delay, .. } => Ok(delay),
            Verdict::GiveUp(why) => Err(why),
        }
    }

    #[test]
    #[should_panic(expected = "max_attempts is 0")]
    fn max_attempts_zero_is_refused_when_the_policy_is_made() {
        let _ = Policy::exponential(SECOND).max_attempts(0);
    }

    #[test]
    fn max_attempts_one_means_one_call_and_no_retry() {
        let verdict = after(&Policy::exponential(SECOND).max_attempts(1), 1, Failure::transient("x"));
        assert_eq!(verdict, Err(GaveUp::MaxRetriesExceeded { max: 1 }));
        assert_eq!(after(&Policy::once(), 1, Failure::transient("x")), verdict);
    }

    #[test]
    fn max_attempts_counts_all_attempts() {
        let policy = Policy::constant(SECOND).max_attempts(3);
        assert_eq!(after(&policy, 1, Failure::transient("x")), Ok(SECOND));
        assert_eq!(after(&policy, 2, Failure::transient("x")), Ok(SECOND));
        assert_eq!(after(&policy, 3, Failure::transient("x")), Err(GaveUp::MaxRetriesExceeded { max: 3 }));
    }

    #[test]
    fn permanent_and_poison_are_not_retried() {
        let policy = Policy::default();
        assert_eq!(after(&policy, 1, Failure::permanent("x")), Err(GaveUp::Permanent));
        assert_eq!(after(&policy, 1, Failure::poison("x")), Err(GaveUp::Poison));
    }

    #[test]
    fn an_override_is_chosen_by_code_before_class() {
        let policy = Policy::constant(SECOND)
            .on(Class::Transient, Policy::constant(2 * SECOND))
            .on(Code::ResourceExhausted, Policy::constant(3 * SECOND).max_attempts(9))
            .on(Code::NotFound, Policy::constant(4 * SECOND))
            .on(Class::Poison, Policy::constant(SECOND));
        assert_eq!(after(&policy, 1, Failure::transient("x")), Ok(2 * SECOND));
        assert_eq!(after(&policy, 8, Failure::new(Code::ResourceExhausted, "x")), Ok(3 * SECOND));
        assert_eq!(after(&policy, 1, Failure::new(Code::NotFound, "x")), Ok(4 * SECOND), "named, so retried");
        assert_eq!(after(&policy, 1, Failure::new(Code::PermissionDenied, "x")), Err(GaveUp::Permanent));
        assert_eq!(after(&policy, 1, Failure::poison("x")), Err(GaveUp::Poison), "poison never is");
    }

    #[test]
    fn retry_after_is_honoured_up_to_the_cap() {
        let policy = Policy::exponential(SECOND).jitter(Jitter::None).max_delay(10 * SECOND);
        assert_eq!(after(&policy, 1, Failure::transient("x").retry_after(7 * SECOND)), Ok(7 * SECOND));
        assert_eq!(after(&policy, 4, Failure::transient("x").retry_after(SECOND)), Ok(8 * SECOND), "not shortened by it");
        assert_eq!(after(&policy, 1, Failure::transient("x").retry_after(99 * SECOND)), Ok(10 * SECOND));
    }

    #[test]
    fn an_attempt_that_would_begin_at_the_deadline_is_not_made() {
        let policy = Policy::constant(SECOND).deadline(SECOND);
        assert_eq!(after(&policy, 1, Failure::transient("x")), Err(GaveUp::OutOfTime));
        let policy = policy.deadline(SECOND + Duration::from_micros(1));
        assert_eq!(after(&policy, 1, Failure::transient("x")), Ok(SECOND));
    }

    #[test]
    fn presets_are_the_documented_ones() {
        let send = Policy::transient();
        assert_eq!(send.max_attempts, 3);
        assert_eq!((send.max_delay, send.jitter), (5 * SECOND, Jitter::Proportional(200)));
        assert_eq!(send.strategy, Strategy::Exponential { base: SECOND, factor_milli: 2000 });
        let default = Policy::default();
        assert_eq!((default.max_attempts, default.max_delay, default.jitter), (5, 60 * SECOND, Jitter::Additive));
        let schedule = Policy::schedule([SECOND, 3 * SECOND]);
        let delays: Vec<_> = (1..4).map(|attempt| after(&schedule, attempt, Failure::transient("x"))).collect();
        let used_up = Err(GaveUp::MaxRetriesExceeded { max: 3 });
        assert_eq!(delays, [Ok(SECOND), Ok(3 * SECOND), used_up]);
    }

    #[test]
    fn policies_from_data_are_checked() {
        let good = Policy::default();
        assert_eq!(good.validate(), Ok(()));
        let with = |strategy| Policy { strategy, ..Policy::default() }.validate();
        assert_eq!(Policy { max_attempts: 0, ..good.clone() }.validate(), Err(InvalidPolicy::NoAttempts));
        assert_eq!(with(Strategy::Exponential { base: SECOND, factor_milli: 999 }), Err(InvalidPolicy::Factor));
        assert_eq!(with(Strategy::Schedule(Vec::new())), Err(InvalidPolicy::EmptySchedule));
        assert_eq!(Policy { jitter: Jitter::Proportional(1001), ..good.clone() }.validate(), Err(InvalidPolicy::Jitter));
        let inside = good.on(Class::Transient, Policy { max_attempts: 0, ..Policy::default() });
        assert_eq!(inside.validate(), Err(InvalidPolicy::NoAttempts), "overrides are checked too");
    }
}
