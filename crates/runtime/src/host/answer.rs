//! What people answer to the engine's own questions, as the payload of a signal.

use serde::Deserialize;
use serde_json::value::RawValue;
use steadfast_kernel::Payload;

/// About an undo that has failed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum OnUndo {
    Retry,
    Skip,
}

/// About an attempt that is in doubt.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum OnDoubt {
    Completed(Box<RawValue>),
    Failed(String),
    Repeat,
}

pub(super) fn read<T: for<'a> Deserialize<'a>>(payload: &Payload) -> Option<T> {
    serde_json::from_slice(&payload.bytes).ok()
}

/// Whether a signal of that name says something that is understood; what to say if not. Signals that code asks for may say anything.
pub(crate) fn check(name: &str, payload: &Payload) -> Result<(), &'static str> {
    let understood = match name.split_once(':') {
        Some(("undo", _)) => read::<OnUndo>(payload).is_some(),
        Some(("in-doubt", _)) => read::<OnDoubt>(payload).is_some(),
        _ => return Ok(()),
    };
    match (understood, name.starts_with("undo")) {
        (true, _) => Ok(()),
        (false, true) => Err("an undo that has failed is answered by \"retry\" or \"skip\""),
        (false, false) => Err("a step in doubt is answered by {\"completed\": OUTPUT}, {\"failed\": \"WHY\"} or \"repeat\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_that_are_understood_are_taken() {
        let check = |name: &str, payload: &'static str| check(name, &Payload::json(payload));
        for (name, payload) in [
            ("undo:a#1", "\"retry\""),
            ("undo:a#1", "\"skip\""),
            ("in-doubt:a#1", "\"repeat\""),
            ("in-doubt:a#1", "{\"completed\":{\"x\":1}}"),
            ("in-doubt:a#1", "{\"failed\":\"no\"}"),
            ("anything", "null"),
        ] {
            assert_eq!(check(name, payload), Ok(()), "{name} {payload}");
        }
        for (name, payload) in [("undo:a#1", "null"), ("undo:a#1", "\"RetryUndo\""), ("in-doubt:a#1", "{}"), ("in-doubt:a#1", "\"skip\"")] {
            assert!(check(name, payload).is_err(), "{name} {payload}");
        }
    }
}
