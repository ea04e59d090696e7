//! The encoded form of a policy: what a host in another process wants to follow a failure.

use super::{Jitter, Policy, Strategy, When};
use crate::{Class, Code};
use bytes::Bytes;
use prost::Message;
use std::time::Duration;

/// Numbers are for ever; a field that falls out of use keeps its number.
#[derive(Clone, PartialEq, Message)]
struct Body {
    #[prost(uint32, tag = "1")]
    max_attempts: u32,
    /// 1 exponential, 2 linear, 3 constant, 4 schedule.
    #[prost(uint32, tag = "2")]
    strategy: u32,
    /// The base; of a schedule all delays.
    #[prost(message, repeated, tag = "3")]
    delays: Vec<Span>,
    #[prost(uint32, tag = "4")]
    factor_milli: u32,
    #[prost(message, optional, tag = "5")]
    max_delay: Option<Span>,
    /// 0 none, 1 additive, 2 proportional, 3 full, 4 equal.
    #[prost(uint32, tag = "6")]
    jitter: u32,
    #[prost(uint32, tag = "7")]
    jitter_milli: u32,
    #[prost(message, optional, tag = "8")]
    attempt_timeout: Option<Span>,
    #[prost(message, optional, tag = "9")]
    deadline: Option<Span>,
    #[prost(message, repeated, tag = "10")]
    overrides: Vec<Override>,
}

/// A duration, to the nanosecond.
#[derive(Clone, Copy, PartialEq, Message)]
struct Span {
    #[prost(uint64, tag = "1")]
    secs: u64,
    #[prost(uint32, tag = "2")]
    nanos: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Override {
    #[prost(string, optional, tag = "1")]
    class: Option<String>,
    #[prost(string, optional, tag = "2")]
    code: Option<String>,
    #[prost(bytes = "bytes", tag = "3")]
    policy: Bytes,
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Span { secs: duration.as_secs(), nanos: duration.subsec_nanos() }
    }
}

impl Span {
    fn read(self) -> Option<Duration> {
        (self.nanos < 1_000_000_000).then(|| Duration::new(self.secs, self.nanos))
    }
}

/// Policies that travel between processes.
impl Policy {
    /// The encoded form.
    pub fn encode(&self) -> Bytes {
        let (strategy, delays, factor_milli) = match &self.strategy {
            Strategy::Exponential { base, factor_milli } => (1, vec![(*base).into()], *factor_milli),
            Strategy::Linear { base } => (2, vec![(*base).into()], 0),
            Strategy::Constant { base } => (3, vec![(*base).into()], 0),
            Strategy::Schedule(delays) => (4, delays.iter().map(|delay| (*delay).into()).collect(), 0),
        };
        let (jitter, jitter_milli) = match self.jitter {
            Jitter::None => (0, 0),
            Jitter::Additive => (1, 0),
            Jitter::Proportional(milli) => (2, milli),
            Jitter::Full => (3, 0),
            Jitter::Equal => (4, 0),
        };
        let body = Body {
            max_attempts: self.max_attempts,
            strategy,
            delays,
            factor_milli,
            max_delay: Some(self.max_delay.into()),
            jitter,
            jitter_milli,
            attempt_timeout: self.attempt_timeout.map(Into::into),
            deadline: self.deadline.map(Into::into),
            overrides: self.overrides.iter().map(Override::of).collect(),
        };
        body.encode_to_vec().into()
    }

    /// Reads the encoded form; nothing if it cannot be read, or is a policy that cannot be.
    pub fn decode(bytes: Bytes) -> Option<Policy> {
        read(bytes, true)
    }
}

/// An override has none of its own.
fn read(bytes: Bytes, whole: bool) -> Option<Policy> {
    let body = Body::decode(bytes).ok()?;
    let delays = body.delays.iter().map(|delay| delay.read()).collect::<Option<Vec<_>>>()?;
    let base = || delays.first().copied();
    let strategy = match body.strategy {
        1 => Strategy::Exponential { base: base()?, factor_milli: body.factor_milli },
        2 => Strategy::Linear { base: base()? },
        3 => Strategy::Constant { base: base()? },
        4 => Strategy::Schedule(delays),
        _ => return None,
    };
    let jitter = match body.jitter {
        0 => Jitter::None,
        1 => Jitter::Additive,
        2 => Jitter::Proportional(body.jitter_milli),
        3 => Jitter::Full,
        4 => Jitter::Equal,
        _ => return None,
    };
    let span = |span: Option<Span>| match span {
        Some(span) => span.read().map(Some),
        None => Some(None),
    };
    let overrides = if whole { body.overrides.into_iter().map(Override::read).collect::<Option<_>>()? } else { Vec::new() };
    let policy = Policy {
        max_attempts: body.max_attempts,
        strategy,
        max_delay: body.max_delay?.read()?,
        jitter,
        attempt_timeout: span(body.attempt_timeout)?,
        deadline: span(body.deadline)?,
        overrides,
    };
    policy.validate().is_ok().then_some(policy)
}

impl Override {
    fn of((when, policy): &(When, Policy)) -> Self {
        let (class, code) = match when {
            When::Class(class) => (Some(class.as_str().to_string()), None),
            When::Code(code) => (None, Some(code.as_str().to_string())),
        };
        Override { class, code, policy: policy.encode() }
    }

    fn read(self) -> Option<(When, Policy)> {
        let when = match (&self.class, &self.code) {
            (Some(name), None) => [Class::Transient, Class::Permanent, Class::Poison]
                .into_iter()
                .find(|class| class.as_str() == name)?
                .into(),
            (None, Some(name)) => Code::parse(name)?.into(),
            _ => return None,
        };
        Some((when, read(self.policy, false)?))
    }
}

#[cfg(test)]
mod snapshot;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn every_policy_survives_being_sent() {
        let all = Policy::exponential(Duration::from_nanos(3))
            .factor(1.5)
            .max_attempts(9)
            .max_delay(Duration::MAX)
            .jitter(Jitter::Proportional(200))
            .attempt_timeout(SECOND)
            .deadline(SECOND * 9)
            .on(Class::Permanent, Policy::linear(SECOND).jitter(Jitter::Full))
            .on(Code::NotFound, Policy::schedule(vec![SECOND, Duration::ZERO]).jitter(Jitter::Equal));
        for policy in [all, Policy::default(), Policy::once(), Policy::transient(), Policy::constant(Duration::ZERO)] {
            assert_eq!(Policy::decode(policy.encode()), Some(policy));
        }
    }

    #[test]
    fn a_policy_that_cannot_be_is_not_read() {
        let never = Policy { max_attempts: 0, ..Policy::default() };
        assert_eq!(Policy::decode(never.encode()), None);
        let nothing = Policy { strategy: Strategy::Schedule(Vec::new()), ..Policy::default() };
        assert_eq!(Policy::decode(nothing.encode()), None);
        assert_eq!(Policy::decode(Bytes::new()), None);
        assert_eq!(Policy::decode(Bytes::from_static(&[0xff, 0xff])), None);
    }
}
