//! Durations as people write them: `250ms`, `30s`, `2h`, `1h30m`.

use std::time::Duration;

/// The units, the largest first, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads a duration: numbers with units, the largest first.
///
/// # Errors
/// A sentence that says what is wrong and what is meant.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration; write it like 250ms, 30s, 2h or 1h30m (units: d, h, m, s, ms)");
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    let (mut total, mut next_unit) = (0_u64, 0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let place = UNITS
            .iter()
            .position(|(name, _)| *name == unit)
            .filter(|place| *place >= next_unit)
            .ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        total = number.checked_mul(UNITS[place].1).and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        (rest, next_unit) = (after, place + 1);
    }
    Ok(Duration::from_millis(total))
}

/// As it would be written: exact to the millisecond, and read back to the same by [`parse`].
pub(crate) fn exact(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, size) in UNITS {
        if rest >= size {
            text += &format!("{}{unit}", rest / size);
            rest %= size;
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

/// For people who only want to know about how long: `0.25 s`, `12 s`, `3 min`, `2 h 5 min`, `4 days`.
pub(crate) fn rough(duration: Duration) -> String {
    let (millis, seconds) = (duration.as_millis(), duration.as_secs());
    match seconds {
        0 if millis == 0 => "0 s".into(),
        0..10 => format!("{} s", (duration.as_secs_f64() * 100.0).round() / 100.0),
        10..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => with_rest(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn with_rest(whole: u64, unit: &str, rest: u64, smaller: &str) -> String {
    if rest == 0 { format!("{whole} {unit}") } else { format!("{whole} {unit} {rest} {smaller}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_read() {
        for (text, millis) in [("250ms", 250), ("30s", 30_000), ("2h", 7_200_000), ("1h30m", 5_400_000), ("1d2h3m4s5ms", 93_784_005)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
            assert_eq!(parse(&exact(Duration::from_millis(millis))), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        for text in ["", "5", "h", "5 minutes", "5x", "30s1h", "1m1m", "-1s", "1.5h", "99999999999999999999s", "9999999999999999h"] {
            assert!(parse(text).unwrap_err().contains("is no duration"), "{text}");
        }
    }

    #[test]
    fn rough_durations_have_as_much_detail_as_people_want() {
        for (millis, text) in [
            (0, "0 s"),
            (250, "0.25 s"),
            (9_999, "10 s"),
            (61_000, "61 s"),
            (150_000, "2 min"),
            (7_500_000, "2 h 5 min"),
            (345_600_000, "4 days"),
        ] {
            assert_eq!(rough(Duration::from_millis(millis)), text);
        }
    }
}
