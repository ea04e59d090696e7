//! Durations as people write them: `250ms`, `30s`, `2h`, `1h30m`.

use std::time::Duration;

/// The units, longest first: each may stand once, and only before the shorter ones.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// How durations are written, for messages.
pub(crate) const HOW: &str = "write a duration as `250ms`, `30s`, `10m`, `2h`, `1d` or `1h30m`";

/// Reads a duration; nothing if it is none. Zero is written `0s`.
pub fn parse(text: &str) -> Option<Duration> {
    let (mut rest, mut millis, mut allowed) = (text, 0_u64, &UNITS[..]);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let length = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = allowed.iter().position(|(name, _)| *name == &rest[..length])?;
        millis = millis.checked_add(number.checked_mul(allowed[unit].1)?)?;
        (rest, allowed) = (&rest[length..], &allowed[unit + 1..]);
    }
    (!text.is_empty()).then(|| Duration::from_millis(millis))
}

/// Writes a duration as `parse` reads it, to the millisecond.
pub fn show(duration: Duration) -> String {
    let mut millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".into();
    }
    let mut text = String::new();
    for (name, unit) in UNITS {
        if millis >= unit {
            text += &format!("{}{name}", millis / unit);
            millis %= unit;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, millis) in
            [("250ms", 250), ("30s", 30_000), ("2h", 7_200_000), ("1h30m", 5_400_000), ("1d2h3m4s5ms", 93_784_005), ("0s", 0)]
        {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
            assert_eq!(parse(&show(Duration::from_millis(millis))), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "5", "s", "5 s", "1.5s", "-1s", "5sec", "30m1h", "1s1s", "99999999999999999999s", "18446744073709551615d", "ü"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
