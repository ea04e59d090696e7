//! What an HTTP answer other than a success means, and what it means that there is none: the same for steps and for callbacks.

use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure, Timestamp};

/// The failure that a status other than 2xx is. `target` is who was asked, as messages may show it; `now` counts if the other side does not say what time it has.
pub fn refused(target: &str, status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Failure {
    let (class, code) = meaning(status.as_u16());
    let failure = Failure::new(code, format!("{target} answered {}", status.as_u16())).class(class);
    match retry_after(headers, now) {
        Some(delay) if class == Class::Transient => failure.retry_after(delay),
        _ => failure,
    }
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

/// How long the other side asks us to wait: seconds, or until a time, which is counted from the time that its clock shows, or else ours.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let wanted = text(RETRY_AFTER)?.trim();
    if let Ok(seconds) = wanted.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let time = |text: &str| jiff::fmt::rfc2822::parse(text.trim()).ok().map(|time| time.timestamp().as_second());
    let theirs = text(DATE).and_then(time).unwrap_or(now.as_micros() / 1_000_000);
    let seconds = time(wanted)?.checked_sub(theirs)?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// The failure of a request that got no answer. It may pass. The error itself shows the whole address, so only what lies behind it is told.
pub fn unreachable(target: &str, error: &reqwest::Error) -> Failure {
    if error.is_redirect() {
        return Failure::permanent(format!("{target} leads from one address to the next without end"));
    }
    let (code, what) = if error.is_timeout() {
        (Code::DeadlineExceeded, "did not answer in time")
    } else if error.is_connect() {
        (Code::Unavailable, "cannot be reached")
    } else {
        (Code::Unavailable, "broke off")
    };
    let mut failure = Failure::new(code, format!("{target} {what}"));
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
    use reqwest::header::HeaderValue;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn statuses_have_the_classes_that_the_interface_promises() {
        let transient: Vec<u16> = (300..600).filter(|status| meaning(*status).0 == Class::Transient).collect();
        let expected: Vec<u16> = [408, 425, 429].into_iter().chain(500..600).collect();
        assert_eq!(transient, expected);
        assert!((300..600).all(|status| meaning(status).0 != Class::Poison));
    }

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_time() {
        let now = jiff::fmt::rfc2822::parse("Wed, 21 Oct 2026 07:28:10 GMT").unwrap().timestamp().as_microsecond();
        let wait =
            |pairs: &[(HeaderName, &'static str)]| retry_after(&headers(pairs), Timestamp::from_micros(now)).map(|delay| delay.as_secs());
        assert_eq!(wait(&[(RETRY_AFTER, "17")]), Some(17));
        assert_eq!(wait(&[(RETRY_AFTER, "Wed, 21 Oct 2026 07:28:30 GMT"), (DATE, "Wed, 21 Oct 2026 07:28:00 GMT")]), Some(30));
        assert_eq!(wait(&[(RETRY_AFTER, "Wed, 21 Oct 2026 07:27:00 GMT"), (DATE, "Wed, 21 Oct 2026 07:28:00 GMT")]), Some(0));
        assert_eq!(wait(&[(RETRY_AFTER, "Wed, 21 Oct 2026 07:28:30 GMT")]), Some(20), "by our clock");
        for bad in ["soon", "-1", ""] {
            assert_eq!(wait(&[(RETRY_AFTER, bad)]), None, "{bad}");
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again_when_the_other_side_says() {
        let after = |status: u16| {
            let status = StatusCode::from_u16(status).unwrap();
            refused("a", status, &headers(&[(RETRY_AFTER, "17")]), Timestamp::EPOCH).retry_after
        };
        assert_eq!((after(503), after(404)), (Some(Duration::from_secs(17)), None));
    }
}
