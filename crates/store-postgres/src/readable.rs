//! What of a payload people can read in `psql`: JSON that PostgreSQL takes as `jsonb`, as it came; nothing otherwise.
//!
//! A commit must never fail because of what somebody's payload has in it, so everything that `jsonb` refuses is found here: U+0000, halves of
//! surrogate pairs, numbers out of its range, depth.

use steadfast_kernel::{Encoding, Payload};

/// Payloads above that are not kept a second time for people.
const BYTES_MAX: usize = 64 << 10;

/// How deep it may be; PostgreSQL takes more, as far as its stack goes.
const DEPTH_MAX: usize = 100;

/// A number may have so many digits before and after the point; `numeric` takes more.
const NUMBER_MAX: usize = 300;

/// The payload as JSON for people, if it is one.
pub(crate) fn readable(payload: &Payload) -> Option<&str> {
    if payload.encoding != Encoding::Json || payload.bytes.len() > BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(&payload.bytes).ok()?;
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    is_taken(text.as_bytes()).then_some(text)
}

/// Whether some valid JSON is taken with all its strings and numbers.
fn is_taken(mut json: &[u8]) -> bool {
    let (mut in_string, mut depth) = (false, 0);
    while let [first, rest @ ..] = json {
        json = match (in_string, first) {
            (_, b'"') => {
                in_string = !in_string;
                rest
            }
            (true, b'\\') => match after_escape(rest) {
                Some(rest) => rest,
                None => return false,
            },
            (false, b'[' | b'{') if depth == DEPTH_MAX => return false,
            (false, b'[' | b'{') => {
                depth += 1;
                rest
            }
            (false, b']' | b'}') => {
                depth -= 1;
                rest
            }
            (false, b'-' | b'0'..=b'9') => {
                let length = json
                    .iter()
                    .take_while(|byte| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
                    .count();
                if !is_small(&json[..length]) {
                    return false;
                }
                &json[length..]
            }
            _ => rest,
        };
    }
    true
}

/// What follows an escape; nothing if it is U+0000 or half of a pair.
fn after_escape(escape: &[u8]) -> Option<&[u8]> {
    let [b'u', rest @ ..] = escape else { return escape.get(1..) };
    let (code, rest) = code(rest)?;
    match code {
        0 | 0xdc00..=0xdfff => None,
        0xd800..=0xdbff => match code_of_escape(rest)? {
            (0xdc00..=0xdfff, rest) => Some(rest),
            _ => None,
        },
        _ => Some(rest),
    }
}

fn code_of_escape(escape: &[u8]) -> Option<(u32, &[u8])> {
    code(escape.strip_prefix(b"\\u")?)
}

fn code(digits: &[u8]) -> Option<(u32, &[u8])> {
    let (code, rest) = digits.split_at_checked(4)?;
    Some((u32::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok()?, rest))
}

fn is_small(number: &[u8]) -> bool {
    let mut parts = number.split(|byte| matches!(byte, b'e' | b'E'));
    let digits = parts.next().unwrap_or_default();
    let exponent = parts.next().and_then(|exponent| std::str::from_utf8(exponent).ok());
    let fits = exponent.is_none_or(|exponent| exponent.parse::<i64>().is_ok_and(|exponent| exponent.unsigned_abs() <= NUMBER_MAX as u64));
    digits.len() <= NUMBER_MAX && fits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(json: &'static str) -> bool {
        readable(&Payload::json(json)).is_some()
    }

    #[test]
    fn what_jsonb_takes_is_shown_as_it_came() {
        for json in
            ["{}", "null", " [1, -2.5e+30, \"\\u00e9\\n\\\\u0000\"] ", "\"\\ud83e\\udd80 \u{1f980}\"", "{\"a\":{\"b\":[true]}}", "1e300"]
        {
            assert!(shown(json), "{json}");
        }
    }

    #[test]
    fn what_jsonb_refuses_is_not_shown() {
        for json in
            ["", "{", "x", "\"\\u0000\"", "\"\\ud83e\"", "\"\\udd80\"", "\"\\ud83e\\ud83e\"", "\"\\ud83ex\"", "1e301", "1e-99999", "\"\0\""]
        {
            assert!(!shown(json), "{json}");
        }
        assert!(readable(&Payload::json(&b"\"\xff\""[..])).is_none());
        assert!(readable(&Payload::json("9".repeat(400))).is_none());
        assert!(readable(&Payload::json(format!("{}1{}", "[".repeat(500), "]".repeat(500)))).is_none());
        assert!(readable(&Payload::json(format!("\"{}\"", "a".repeat(BYTES_MAX)))).is_none());
    }
}
