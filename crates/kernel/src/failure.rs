//! Why an attempt or a run failed: what a user's code returns and what the journal keeps.

use crate::backoff;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The longest message or cause that is kept, in bytes; the rest is cut off with an ellipsis.
const MESSAGE_MAX: usize = 4096;

/// The most causes that are kept.
const CAUSES_MAX: usize = 16;

/// What may follow a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Class {
    /// It may work later: retried by policy.
    Transient,
    /// It will not work, however often: not retried.
    Permanent,
    /// It cannot even be understood: not retried, kept for a person.
    Poison,
}

impl Class {
    /// The public name: `transient`, `permanent`, `poison`.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Transient => "transient",
            Class::Permanent => "permanent",
            Class::Poison => "poison",
        }
    }

    /// The class of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Class::Transient, Class::Permanent, Class::Poison].into_iter().find(|class| class.as_str() == name)
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal is $class:ident,)+) => {
        /// What went wrong, from a closed set that programs can branch on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Code { $($(#[$doc])* $variant,)+ }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// The public name, for example `UNAVAILABLE`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name,)+ }
            }

            /// The code of that public name.
            pub fn parse(name: &str) -> Option<Code> {
                Self::ALL.iter().copied().find(|code| code.as_str() == name)
            }

            /// The class that a failure of this code has unless it says otherwise.
            pub fn class(self) -> Class {
                match self { $(Code::$variant => Class::$class,)+ }
            }
        }
    };
}

codes! {
    /// The other side cannot be reached or does not answer.
    Unavailable = "UNAVAILABLE" is Transient,
    /// It took longer than it may.
    DeadlineExceeded = "DEADLINE_EXCEEDED" is Transient,
    /// A quota, a queue or a disk is full.
    ResourceExhausted = "RESOURCE_EXHAUSTED" is Transient,
    /// What was asked for does not exist.
    NotFound = "NOT_FOUND" is Permanent,
    /// The request itself is wrong.
    InvalidArgument = "INVALID_ARGUMENT" is Permanent,
    /// The other side is in a state in which this cannot be done.
    FailedPrecondition = "FAILED_PRECONDITION" is Permanent,
    /// Not allowed.
    PermissionDenied = "PERMISSION_DENIED" is Permanent,
    /// Somebody called it off.
    Cancelled = "CANCELLED" is Permanent,
    /// Something unexpected, a panic among them.
    Internal = "INTERNAL" is Transient,
    /// Bytes that do not say what they should.
    DecodeFailure = "DECODE_FAILURE" is Poison,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why an attempt failed: class, code, message, causes, and how long to wait before the next one.
///
/// A `Failure` is what steps and workflows return as their error. It deliberately does not implement [`std::error::Error`], so that `?`
/// converts any error into one: transient with code `INTERNAL`, the messages of its sources as causes, unless a [`FailureError`] is among
/// them, whose class, code and `retry_after` are then kept.
///
/// ```
/// use steadfast_kernel::{Class, Code, Failure};
///
/// fn parse(text: &str) -> Result<u32, Failure> {
///     Ok(text.parse::<u32>()?)                                    // any error: transient
/// }
/// fn check(amount: u32) -> Result<u32, Failure> {
///     if amount == 0 {
///         return Err(Failure::permanent("nothing to charge").code(Code::InvalidArgument));
///     }
///     Ok(amount)
/// }
/// assert_eq!(parse("x").unwrap_err().class, Class::Transient);
/// assert_eq!(check(0).unwrap_err().class, Class::Permanent);
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[must_use]
#[non_exhaustive]
pub struct Failure {
    /// Whether it may pass.
    pub class: Class,
    /// What went wrong, for programs.
    pub code: Code,
    /// What went wrong, for people.
    pub message: String,
    /// What lies behind it, nearest first.
    pub causes: Vec<String>,
    /// How long the other side asked us to wait.
    pub retry_after: Option<Duration>,
    /// How many attempts were made, once the engine has given up; zero before.
    pub attempts: u32,
    /// How many attempts were allowed, if they were used up; see [`exhausted`](Failure::exhausted).
    pub max_attempts: Option<u32>,
}

impl Failure {
    /// A failure of that code, in the class that the code belongs to.
    pub fn new(code: Code, message: impl fmt::Display) -> Self {
        Failure {
            class: code.class(),
            code,
            message: bounded(message.to_string()),
            causes: Vec::new(),
            retry_after: None,
            attempts: 0,
            max_attempts: None,
        }
    }

    /// A failure that may pass: retried by policy. Its code is `UNAVAILABLE` until [`code`](Failure::code) says otherwise.
    pub fn transient(message: impl fmt::Display) -> Self {
        Failure { class: Class::Transient, ..Failure::new(Code::Unavailable, message) }
    }

    /// A failure that will not pass: not retried. Its code is `FAILED_PRECONDITION` until [`code`](Failure::code) says otherwise.
    pub fn permanent(message: impl fmt::Display) -> Self {
        Failure { class: Class::Permanent, ..Failure::new(Code::FailedPrecondition, message) }
    }

    /// Something that cannot be understood and needs a person: not retried. Its code is `DECODE_FAILURE`.
    pub fn poison(message: impl fmt::Display) -> Self {
        Failure { class: Class::Poison, ..Failure::new(Code::DecodeFailure, message) }
    }

    /// The same failure with another code; its class stays.
    pub fn code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// The same failure in another class; its code stays.
    pub fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// Asks for the next attempt no earlier than that, in whole microseconds, rounded up. The policy's `max_delay` still bounds it.
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(Duration::from_micros(backoff::micros(delay))); // what the journal keeps
        self
    }

    /// Adds what lies behind it, nearest first.
    pub fn cause(mut self, cause: impl fmt::Display) -> Self {
        if self.causes.len() < CAUSES_MAX {
            self.causes.push(bounded(cause.to_string()));
        }
        self
    }

    /// The failure of a step whose attempts are used up: permanent, with the code of the last failure, which becomes its first cause.
    pub fn max_retries_exceeded(max: u32, last: Failure) -> Self {
        let message = match last.attempts.max(1) {
            made if made <= max => format!("gave up after {made} of {max} attempts: {}", last.message),
            made => format!("gave up after {made} attempts, where such a failure allows {max}: {}", last.message), // those before it failed otherwise
        };
        last.given_up(message, Some(max))
    }

    /// The failure of a step that has no time left for another attempt.
    pub(crate) fn out_of_time(last: Failure) -> Self {
        let message = format!("no time left for another attempt: {}", last.message);
        Failure { code: Code::DeadlineExceeded, ..last.given_up(message, None) }
    }

    fn given_up(self, message: String, max_attempts: Option<u32>) -> Self {
        let causes = std::iter::once(self.message).chain(self.causes).take(CAUSES_MAX).collect();
        Failure { class: Class::Permanent, message: bounded(message), causes, retry_after: None, max_attempts, ..self }
    }

    /// If the step failed because its attempts were used up: how many there were, and the last reason.
    pub fn exhausted(&self) -> Option<MaxRetriesExceeded<'_>> {
        let max = self.max_attempts?;
        let (reason, causes) = self.causes.split_first()?;
        Some(MaxRetriesExceeded { max, reason, causes })
    }

    /// Wraps it for code that wants a [`std::error::Error`]. `?` finds it again and keeps class and code.
    pub fn into_error(self) -> FailureError {
        FailureError(self)
    }
}

/// Why a step was given up although its last failure was transient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxRetriesExceeded<'a> {
    /// The most attempts the policy allowed.
    pub max: u32,
    /// The message of the last failure.
    pub reason: &'a str,
    /// What lay behind the last failure, nearest first.
    pub causes: &'a [String],
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.code, self.class.as_str(), self.message)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        for cause in &self.causes {
            write!(f, "; caused by: {cause}")?;
        }
        Ok(())
    }
}

/// A [`Failure`] as a [`std::error::Error`], for code that needs one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureError(pub Failure);

impl fmt::Display for FailureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl Error for FailureError {}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        if let Some(FailureError(failure)) = (&error as &dyn Any).downcast_ref() {
            return failure.clone();
        }
        let mut failure = Failure { class: Class::Transient, ..Failure::new(Code::Internal, &error) };
        let mut source = error.source();
        while let Some(inner) = source {
            failure = failure.cause(inner);
            if let Some(FailureError(says)) = inner.downcast_ref() {
                (failure.class, failure.code, failure.retry_after) = (says.class, says.code, says.retry_after);
                break;
            }
            source = inner.source();
        }
        failure
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > MESSAGE_MAX {
        text.truncate(text.floor_char_boundary(MESSAGE_MAX - '…'.len_utf8()));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer<E: Error + 'static>(#[source] E);

    #[derive(Debug, thiserror::Error)]
    #[error("inner")]
    struct Inner;

    #[test]
    fn any_error_becomes_a_transient_failure_with_its_causes() {
        let failure = Failure::from(Outer(Outer(Inner)));
        assert_eq!(failure.class, Class::Transient);
        assert_eq!(failure.code, Code::Internal);
        assert_eq!(failure.message, "outer");
        assert_eq!(failure.causes, ["outer", "inner"]);
    }

    #[test]
    fn an_error_that_says_otherwise_keeps_its_class() {
        let said = Failure::permanent("no such card").code(Code::NotFound).retry_after(Duration::from_secs(3));
        assert_eq!(Failure::from(said.clone().into_error()), said);
        let wrapped = Failure::from(Outer(said.into_error()));
        assert_eq!((wrapped.class, wrapped.code), (Class::Permanent, Code::NotFound));
        assert_eq!(wrapped.retry_after, Some(Duration::from_secs(3)));
        assert_eq!((&*wrapped.message, &*wrapped.causes), ("outer", &["no such card".to_string()][..]));
    }

    #[test]
    fn exhaustion_names_the_limit_the_reason_and_the_cause() {
        let mut last = Failure::transient("connection timeout").cause("socket closed");
        last.attempts = 3;
        let failure = Failure::max_retries_exceeded(3, last);
        assert_eq!(failure.class, Class::Permanent);
        assert_eq!(failure.code, Code::Unavailable);
        assert_eq!(failure.message, "gave up after 3 of 3 attempts: connection timeout");
        let exhausted = failure.exhausted().unwrap();
        assert_eq!((exhausted.max, exhausted.reason), (3, "connection timeout"));
        assert_eq!(exhausted.causes, ["socket closed"]);
        assert_eq!(failure.attempts, 3);
    }

    #[test]
    fn an_exhaustion_of_fewer_attempts_than_were_made_says_so() {
        let last = Failure { attempts: 3, ..Failure::transient("no stock") };
        assert_eq!(Failure::max_retries_exceeded(1, last).message, "gave up after 3 attempts, where such a failure allows 1: no stock");
    }

    #[test]
    fn messages_and_causes_are_bounded() {
        let failure = (0..100).fold(Failure::transient("ü".repeat(5000)), |f, i| f.cause(i));
        assert!(failure.message.len() <= MESSAGE_MAX && failure.message.ends_with("ü…"));
        assert_eq!(failure.causes.len(), CAUSES_MAX);
    }

    #[test]
    fn every_code_has_its_public_name_and_class() {
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(*code));
        }
        assert_eq!(Code::parse("NO_SUCH_CODE"), None);
        let transient: Vec<_> = Code::ALL.iter().filter(|c| c.class() == Class::Transient).collect();
        assert_eq!(transient, [&Code::Unavailable, &Code::DeadlineExceeded, &Code::ResourceExhausted, &Code::Internal]);
        assert_eq!(Code::DecodeFailure.class(), Class::Poison);
    }
}
