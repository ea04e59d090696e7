//! What an answer means: any 2xx is told; the rest is a failure of the class that its status says, as for `http` steps.

use http::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use reqwest::StatusCode;
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure};
use steadfast_runtime::clock::{Clock, SystemClock};

/// What came of a call. Nothing of the answer but its status is said: it may be anything.
pub(super) fn outcome(target: &str, status: StatusCode, headers: &HeaderMap) -> Result<(), Failure> {
    if status.is_success() {
        return Ok(());
    }
    let (class, code) = meaning(status.as_u16());
    let redirects = if status.is_redirection() { "; redirects are not followed, so give the address that it leads to" } else { "" };
    let failure = Failure::new(code, format!("{target} answered {}{redirects}", status.as_u16())).class(class);
    Err(match retry_after(headers, SystemClock.now().as_micros() / 1_000_000) {
        Some(delay) if class == Class::Transient => failure.retry_after(delay),
        _ => failure,
    })
}

/// What a status other than 2xx means.
fn meaning(status: u16) -> (Class, Code) {
    match status {
        408 | 504 => (Class::Transient, Code::DeadlineExceeded),
        429 => (Class::Transient, Code::ResourceExhausted),
        500 => (Class::Transient, Code::Internal),
        425 | 500.. => (Class::Transient, Code::Unavailable),
        400 | 413 | 414 | 415 | 422 => (Class::Permanent, Code::InvalidArgument),
        401 | 403 => (Class::Permanent, Code::PermissionDenied),
        404 | 410 => (Class::Permanent, Code::NotFound),
        _ => (Class::Permanent, Code::FailedPrecondition),
    }
}

/// How long the other side asks us to wait: seconds, or until a time, which is counted from the time that its clock shows, or else ours (in seconds).
fn retry_after(headers: &HeaderMap, now: i64) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let wanted = text(RETRY_AFTER)?.trim();
    if let Ok(seconds) = wanted.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let time = |text: &str| jiff::fmt::rfc2822::parse(text.trim()).ok().map(|time| time.timestamp().as_second());
    let theirs = text(DATE).and_then(time).unwrap_or(now);
    let seconds = time(wanted)?.checked_sub(theirs)?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// There was no answer. It may pass. The error itself shows the whole address, so only what lies behind it is told.
pub(super) fn none(target: &str, error: &reqwest::Error) -> Failure {
    let (code, what) = match error {
        error if error.is_timeout() => (Code::DeadlineExceeded, "did not answer in time"),
        error if error.is_connect() => (Code::Unavailable, "cannot be reached"),
        _ => (Code::Unavailable, "broke off"),
    };
    let mut failure = Failure::new(code, format!("{target} {what}")).class(Class::Transient);
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        failure = failure.cause(cause);
        source = cause.source();
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers<const N: usize>(pairs: [(HeaderName, &'static str); N]) -> HeaderMap {
        pairs.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn statuses_have_the_classes_that_steps_have() {
        let of = |status: u16| outcome("http://a", StatusCode::from_u16(status).unwrap(), &HeaderMap::new());
        assert!((200..300).all(|status| of(status).is_ok()));
        let transient: Vec<u16> = (300..600).filter(|status| of(*status).unwrap_err().class == Class::Transient).collect();
        let expected: Vec<u16> = [408, 425, 429].into_iter().chain(500..600).collect();
        assert_eq!(transient, expected);
        assert!(of(302).unwrap_err().message.contains("redirects are not followed"));
        assert_eq!(of(503).unwrap_err().message, "http://a answered 503");
    }

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_time() {
        let now = jiff::fmt::rfc2822::parse("Wed, 21 Oct 2026 07:28:10 GMT").unwrap().timestamp().as_second();
        let wait = |pairs: &[(HeaderName, &'static str)]| {
            let headers = pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
            retry_after(&headers, now).map(|delay| delay.as_secs())
        };
        assert_eq!(wait(&[(RETRY_AFTER, "17")]), Some(17));
        assert_eq!(wait(&[(RETRY_AFTER, "Wed, 21 Oct 2026 07:28:30 GMT"), (DATE, "Wed, 21 Oct 2026 07:28:00 GMT")]), Some(30));
        assert_eq!(wait(&[(RETRY_AFTER, "Wed, 21 Oct 2026 07:27:00 GMT"), (DATE, "Wed, 21 Oct 2026 07:28:00 GMT")]), Some(0));
        assert_eq!(wait(&[(RETRY_AFTER, "Wed, 21 Oct 2026 07:28:30 GMT")]), Some(20), "by our clock");
        for bad in ["soon", "-1", ""] {
            assert_eq!(wait(&[(RETRY_AFTER, bad)]), None, "{bad}");
        }
        let after = |status: u16| {
            let answer = outcome("a", StatusCode::from_u16(status).unwrap(), &headers([(RETRY_AFTER, "17")]));
            answer.unwrap_err().retry_after
        };
        assert_eq!((after(503), after(404)), (Some(Duration::from_secs(17)), None), "only what may pass is tried again");
    }
}
