//! What requests say. What the user wrote as JSON is sent to the letter.

use crate::error::Error;
use crate::output::time;
use rand::TryRng;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;
use std::io::Read;

/// The body of a request: a JSON object.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Body(BTreeMap<&'static str, Box<RawValue>>);

impl Body {
    /// With that field, if there is a value for it.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: Option<impl Serialize>) -> Self {
        if let Some(value) = value.and_then(|value| to_raw_value(&value).ok()) {
            self.0.insert(name, value);
        }
        self
    }

    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }
}

/// JSON that was given as an argument: itself, `@FILE`, or `-` for stdin.
///
/// # Errors
/// If it cannot be read, or is no JSON.
pub(crate) fn json_argument(flag: &str, text: &str) -> Result<Box<RawValue>, Error> {
    let (from, text) = argument(flag, text)?;
    json(flag, &from, &text)
}

/// A value that was given as an argument: JSON, `@FILE`, or `-` for stdin. What is no JSON is a text, unless it begins like an object, a list or a text in quotes:
/// a missing quote is to be told, not kept.
///
/// # Errors
/// If it cannot be read, or begins like JSON and is none.
pub(crate) fn value_argument(name: &str, text: &str) -> Result<Box<RawValue>, Error> {
    let (from, text) = argument(name, text)?;
    let is_meant_as_json = text.trim_start().starts_with(['{', '[', '"']);
    match serde_json::from_str(text.trim()) {
        Ok(value) => Ok(value),
        Err(_) if !is_meant_as_json => to_raw_value(text.trim_end_matches(['\r', '\n'])).map_err(|error| Error::failed(name, &error)),
        Err(_) => json(name, &from, &text),
    }
}

/// What an argument stands for, and where that came from.
fn argument(flag: &str, text: &str) -> Result<(String, String), Error> {
    match text.strip_prefix('@') {
        Some(path) => file(flag, path),
        None if text == "-" => file_or_stdin(flag, text),
        None => Ok(("it".into(), text.into())),
    }
}

/// What stands in a file, or on stdin if the path is `-`, and where that came from.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn file_or_stdin(flag: &str, path: &str) -> Result<(String, String), Error> {
    match path {
        "-" => match stdin() {
            Ok(text) => Ok(("stdin".into(), text)),
            Err(error) => Err(Error::Usage(format!("{flag}: cannot read stdin: {error}"))),
        },
        path => file(flag, path),
    }
}

fn file(flag: &str, path: &str) -> Result<(String, String), Error> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((path.into(), text)),
        Err(error) => Err(Error::Usage(format!("{flag}: cannot read {path}: {error}"))),
    }
}

fn json(flag: &str, from: &str, text: &str) -> Result<Box<RawValue>, Error> {
    serde_json::from_str(text.trim()).map_err(|error| {
        let quotes =
            if from == "it" { "; texts need double quotes, and the shell single ones around it: '{\"order\":\"17\"}'" } else { "" };
        Error::Usage(format!("{flag}: {from} is no JSON: {error}{quotes}"))
    })
}

fn stdin() -> std::io::Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map(|_| text)
}

/// A key that nobody else has, and that sorts by time.
///
/// # Errors
/// If the system gives no random numbers.
pub(crate) fn fresh_key() -> Result<String, Error> {
    let mut bytes = [0; 10];
    let none = |error| Error::failed("the system gives no random numbers", &error);
    rand::rngs::SysRng.try_fill_bytes(&mut bytes).map_err(none)?;
    let millis = u64::try_from(time::now().as_micros() / 1000).unwrap_or_default();
    Ok(uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_wrote_is_sent_to_the_letter() {
        let input = json_argument("--input", r#" {"b":1.10,"a":12345678901234567890123} "#).unwrap();
        let body = Body::default().with("input", Some(&input)).with("reason", None::<String>).with("id", Some("x"));
        assert_eq!(body.to_text(), r#"{"id":"x","input":{"b":1.10,"a":12345678901234567890123}}"#);
    }

    #[test]
    fn a_value_that_is_no_json_is_a_text() {
        let value = |text: &str| value_argument("VALUE", text).map(|value| value.get().to_owned());
        for (text, expected) in [
            ("17", "17"),
            ("null", "null"),
            (r#"{"b":1.10}"#, r#"{"b":1.10}"#),
            ("node-1", r#""node-1""#),
            ("it is \"late\"", r#""it is \"late\"""#),
            ("", r#""""#),
            (r#""17""#, r#""17""#),
        ] {
            assert_eq!(value(text).unwrap(), expected);
        }
        for text in ["{order:17}", "[1,", "\"late"] {
            let error = value(text).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains("VALUE: it is no JSON"), "{error}");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("value");
        std::fs::write(&file, "two\nlines\n").unwrap();
        assert_eq!(value(&format!("@{}", file.display())).unwrap(), r#""two\nlines""#);
    }

    #[test]
    fn what_is_no_json_is_wrong_use() {
        let error = json_argument("--input", "{order:17}").unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("--input: it is no JSON"), "{error}");
        assert!(
            json_argument("--input", "@/no/such/file")
                .unwrap_err()
                .to_string()
                .contains("cannot read /no/such/file")
        );
    }
}
