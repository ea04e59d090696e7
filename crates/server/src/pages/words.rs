//! Times and durations in words. `assets/times.js` says the same in the browser, where time goes on.

use maud::{Markup, html};
use std::time::Duration;
use steadfast_kernel::Timestamp;
use steadfast_runtime::clock::{Clock, SystemClock};

/// The time for which a page is rendered.
pub(super) fn now() -> Timestamp {
    SystemClock.now()
}

/// How long ago or how far ahead, with the exact time as its title.
pub(super) fn relative(at: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(at) title=(exact(at)) data-relative { (distance(at, now)) } }
}

/// How long after `start`, with the exact time as its title.
pub(super) fn offset(at: Timestamp, start: Timestamp) -> Markup {
    html! { time datetime=(at) title=(exact(at)) { "+" (lasted(at.saturating_since(start))) } }
}

/// `12 s ago`, `in 3 min`, `now`.
pub(super) fn distance(at: Timestamp, now: Timestamp) -> String {
    match (coarse(now.saturating_since(at)), coarse(at.saturating_since(now))) {
        (Some(ago), _) => format!("{ago} ago"),
        (None, Some(ahead)) => format!("in {ahead}"),
        (None, None) => "now".into(),
    }
}

/// The exact time, for people.
pub(super) fn exact(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} UTC", text.trim_end_matches('Z').replacen('T', " ", 1))
}

/// In the largest unit that fits; nothing below a second.
fn coarse(duration: Duration) -> Option<String> {
    let seconds = duration.as_secs();
    Some(match seconds {
        0 => return None,
        1..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    })
}

/// How long something took: three digits at the most in one unit, or two units.
pub(super) fn lasted(duration: Duration) -> String {
    let (micros, seconds) = (duration.as_micros(), duration.as_secs());
    let two = |large: u64, unit: &str, small: u64, smaller: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {smaller}"),
    };
    match seconds {
        0 if micros == 0 => "0 s".into(),
        0 if micros < 1_000 => format!("{micros} µs"),
        0 if micros < 10_000 => format!("{:.1} ms", micros as f64 / 1e3),
        0 => format!("{} ms", micros / 1_000),
        1..10 => format!("{:.1} s", micros as f64 / 1e6),
        10..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// A sentence begins with a capital letter.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// `1 attempt`, `2 attempts`.
pub(super) fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_digits_that_matter() {
        for (micros, text) in [
            (0, "0 s"),
            (999, "999 µs"),
            (1_500, "1.5 ms"),
            (42_000, "42 ms"),
            (1_240_000, "1.2 s"),
            (59_900_000, "59 s"),
            (60_000_000, "1 min"),
            (125_000_000, "2 min 5 s"),
            (7_500_000_000, "2 h 5 min"),
            (266_400_000_000, "3 d 2 h"),
        ] {
            assert_eq!(lasted(Duration::from_micros(micros)), text);
        }
    }

    #[test]
    fn distances_have_a_direction() {
        let now = Timestamp::from_micros(1_700_000_000_000_000);
        let after = |seconds: i64| Timestamp::from_micros(now.as_micros() + seconds * 1_000_000);
        for (seconds, text) in
            [(-200_000, "2 days ago"), (-90, "1 min ago"), (-1, "1 s ago"), (0, "now"), (59, "in 59 s"), (7_200, "in 2 h")]
        {
            assert_eq!(distance(after(seconds), now), text);
        }
        assert_eq!(exact(now), "2023-11-14 22:13:20 UTC");
    }
}
