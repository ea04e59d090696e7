//! Times as people say them: `2 min ago`, `in 30 s`.

use crate::duration;
use std::time::Duration;
use steadfast_kernel::Timestamp;
use steadfast_runtime::clock::{Clock, SystemClock};

/// The time now.
pub(crate) fn now() -> Timestamp {
    SystemClock.now()
}

/// Ends when that long has passed.
pub(crate) async fn pass(duration: Duration) {
    SystemClock.sleep(duration).await;
}

/// Reads a time of the API.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|time| Timestamp::from_micros(time.as_microsecond()))
}

/// `2 min ago` or `in 30 s`; the text itself if it is no time.
pub(crate) fn relative(text: &str, now: Timestamp) -> String {
    parse(text).map_or_else(|| text.into(), |time| relative_to(time, now))
}

fn relative_to(time: Timestamp, now: Timestamp) -> String {
    let (ago, ahead) = (now.saturating_since(time), time.saturating_since(now));
    if ahead > Duration::ZERO {
        format!("in {}", duration::rough(round(ahead)))
    } else if ago < Duration::from_secs(1) {
        "just now".into()
    } else {
        format!("{} ago", duration::rough(round(ago)))
    }
}

/// Nobody wants to know the hundredths of what was some seconds ago.
fn round(duration: Duration) -> Duration {
    if duration < Duration::from_secs(1) {
        Duration::from_millis(100 * (duration.as_millis() as u64).div_ceil(100))
    } else {
        Duration::from_secs(duration.as_secs())
    }
}

/// How long it took, or has taken so far.
pub(crate) fn took(from: Option<&str>, to: Option<&str>, now: Timestamp) -> Option<Duration> {
    let from = parse(from?)?;
    Some(to.and_then(parse).unwrap_or(now).saturating_since(from))
}

/// `10:30:15.250` of the API's `2025-11-18T10:30:15.250103Z`.
pub(crate) fn of_day(text: &str) -> String {
    let Some(time) = text.parse::<jiff::Timestamp>().ok() else { return text.into() };
    time.to_zoned(jiff::tz::TimeZone::UTC).strftime("%H:%M:%S%.3f").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_from_now() {
        let now = parse("2026-01-01T12:00:00Z").unwrap();
        for (time, text) in [
            ("2026-01-01T11:58:00Z", "2 min ago"),
            ("2026-01-01T11:59:59.7Z", "just now"),
            ("2026-01-01T11:59:12.345Z", "47 s ago"),
            ("2026-01-01T12:00:30Z", "in 30 s"),
            ("2026-01-01T12:00:00.250Z", "in 0.3 s"),
            ("2025-12-25T12:00:00Z", "7 days ago"),
            ("soon", "soon"),
        ] {
            assert_eq!(relative(time, now), text);
        }
        assert_eq!(of_day("2025-11-18T10:30:15.250103Z"), "10:30:15.250");
    }
}
