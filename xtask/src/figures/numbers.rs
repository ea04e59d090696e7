//! Finds numbers in Markdown prose and recognises measurements among them.

/// A number of a line, with the words beside it.
pub(super) struct Number<'a> {
    /// As it is written: `55,753`.
    pub(super) text: &'a str,
    before: &'a str,
    after: &'a str,
}

/// The numbers of a line, in order. `p99`, `99th`, `HTTP/2` and `x86_64` are names.
pub(super) fn numbers(line: &str) -> Vec<Number<'_>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = line[from..].find(|letter: char| letter.is_ascii_digit()).map(|offset| from + offset) {
        let end = start + length(&line[start..]);
        if !is_inside_name(&line[..start]) && !line[end..].starts_with(char::is_alphabetic) {
            found.push(Number { text: &line[start..end], before: &line[..start], after: &line[end..] });
        }
        from = end;
    }
    found
}

/// Digits with commas between thousands and at most one decimal point.
fn length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let (mut end, mut has_point) = (1, false);
    loop {
        match bytes.get(end) {
            Some(byte) if byte.is_ascii_digit() => end += 1,
            Some(b',') if !has_point && (1..=3).all(|offset| is_digit(end + offset)) => end += 4,
            Some(b'.') if !has_point && is_digit(end + 1) => (has_point, end) = (true, end + 2),
            _ => return end,
        }
    }
}

fn is_inside_name(before: &str) -> bool {
    before.ends_with(|letter: char| letter.is_alphanumeric() || "_/-.#".contains(letter))
}

impl Number<'_> {
    pub(super) fn value(&self) -> f64 {
        self.text.replace(',', "").parse().unwrap_or(f64::NAN)
    }

    /// Whether it states the measured value: exactly, or as a round number with at least two digits
    /// before its zeros.
    pub(super) fn states(&self, measured: f64) -> bool {
        let stated = self.value();
        if stated == measured {
            return true;
        }
        let digits = self.text.replace(',', "");
        let significant = digits.trim_end_matches('0');
        if digits.contains('.') || significant.len() < 2 || significant.len() == digits.len() {
            return false;
        }
        let unit = stated / significant.parse().unwrap_or(f64::NAN);
        stated == (measured / unit).floor() * unit || stated == (measured / unit).round() * unit
    }

    /// Whether its form is that of a rate, a percentile or a duration that only a measurement
    /// gives.
    pub(super) fn looks_measured(&self) -> bool {
        let last = self.before.split_whitespace().next_back().unwrap_or_default();
        let next = self.after.split_whitespace().next().unwrap_or_default();
        let next = next.trim_end_matches(|letter: char| !letter.is_alphanumeric());
        ["p50", "p95", "p99", "took"].contains(&last)
            || ["µs", "us"].contains(&next)
            || (next == "ms" && self.text.contains('.'))
            || is_rate(self.after)
    }
}

/// Whether a number is a rate by the words after it: `4,000 small messages a second`.
fn is_rate(after: &str) -> bool {
    let clause = after.split(['.', ';', '|', '(', ')', ':']).next().unwrap_or_default();
    let words: Vec<&str> = clause.split_whitespace().take(6).map(|word| word.trim_matches(['*', ','])).collect();
    let is_time = |at: usize| at > 0 && ["in", "over", "within"].contains(&words[at - 1]); // "once in a second"
    words
        .windows(2)
        .enumerate()
        .any(|(at, pair)| pair[1] == "second" && (pair[0] == "per" || (pair[0] == "a" && !is_time(at))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<&str> {
        numbers(line).iter().map(|number| number.text).collect()
    }

    #[test]
    fn numbers_keep_thousands_and_decimals() {
        assert_eq!(
            texts("1,969 of 0.14 ms, 55,000 runs, 1, 16, 64. 3–4 (12)"),
            ["1,969", "0.14", "55,000", "1", "16", "64", "3", "4", "12"]
        );
    }

    #[test]
    fn names_with_digits_are_skipped() {
        assert_eq!(texts("p99 of HTTP/2 on x86_64, SF0304, call-2, v1.2, the 99th, 2h30m"), Vec::<&str>::new());
    }

    #[test]
    fn round_number_states_measured_value() {
        let states = |text, measured| numbers(text)[0].states(measured);
        assert!(states("55,753", 55_753.0) && states("0.50", 0.5));
        assert!(states("55,000", 55_753.0) && states("56,000", 55_753.0));
        assert!(!states("54,000", 55_753.0) && !states("57,000", 55_753.0));
        assert!(!states("60,000", 55_753.0), "one digit is too coarse");
        assert!(!states("55,753", 55_754.0) && !states("1.30", 1.31));
    }

    #[test]
    fn measurements_are_recognised_by_form() {
        for line in [
            "55,000 one-step runs, or 127,000 steps, a second",
            "p99 4 ms",
            "28 µs",
            "3.1 us,",
            "0.14 ms",
            "they took 153 MiB",
            "7 *steps* per second",
        ] {
            assert!(numbers(line).iter().any(Number::looks_measured), "{line}");
        }
        for line in
            ["30 s", "a body of 4 MiB", "waits 250 ms", "10 runs; a second one", "100 KB in a second", "2 attempts. It tries a second time"]
        {
            assert!(!numbers(line).iter().any(Number::looks_measured), "{line}");
        }
    }
}
