//! What requests say. What the user wrote as JSON is sent to the letter.

use crate::error::Error;
use crate::output::time;
use rand::TryRng;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;
use std::io::Read;

/// The body of a request: a JSON object.
#[derive(Debug, Default)]
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
    let (from, text) = match text.strip_prefix('@') {
        Some(path) => (path, std::fs::read_to_string(path).map_err(|error| Error::Usage(format!("{flag}: cannot read {path}: {error}")))?),
        None if text == "-" => ("stdin", stdin().map_err(|error| Error::Usage(format!("{flag}: cannot read stdin: {error}")))?),
        None => ("it", text.to_owned()),
    };
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
