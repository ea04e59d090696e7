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

/// `2 min ago` or `in 30 s`.
pub(crate) fn relative(time: Timestamp, now: Timestamp) -> String {
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

/// `10:30:15.250` of a time in UTC.
pub(crate) fn of_day(time: Timestamp) -> String {
    let Ok(time) = jiff::Timestamp::from_microsecond(time.as_micros()) else { return String::new() };
    time.to_zoned(jiff::tz::TimeZone::UTC).strftime("%H:%M:%S%.3f").to_string()
}

/// Reads a time.
#[cfg(test)]
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|time| Timestamp::from_micros(time.as_microsecond()))
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
        ] {
            assert_eq!(relative(parse(time).unwrap(), now), text);
        }
        assert_eq!(of_day(parse("2025-11-18T10:30:15.250103Z").unwrap()), "10:30:15.250");
    }
}
