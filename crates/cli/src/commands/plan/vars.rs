//! What a plan's templates see as `vars.NAME`.

use crate::error::Error;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;

/// By name, each to the letter.
pub(super) type Vars = BTreeMap<String, Box<RawValue>>;

/// The vars of a file, which is a JSON object.
///
/// # Errors
/// If it is none.
pub(super) fn of_file(from: &str, text: &str) -> Result<Vars, Error> {
    serde_json::from_str(text.trim()).map_err(|error| Error::Usage(format!("--vars-file: {from} is no JSON object: {error}")))
}

/// Adds `NAME=VALUE`. What is no JSON is a text.
///
/// # Errors
/// If there is no name, or the value begins like an object, a list or a text in quotes and is none.
pub(super) fn add(vars: &mut Vars, given: &str) -> Result<(), Error> {
    let Some((name, value)) = given.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err(Error::Usage(format!("--var {given}: write it as NAME=VALUE, like gateway=https://gate.example.com")));
    };
    let is_meant_as_json = value.trim_start().starts_with(['{', '[', '"']);
    let value = match serde_json::from_str(value.trim()) {
        Ok(value) => value,
        Err(error) if is_meant_as_json => return Err(Error::Usage(format!("--var {name}: it is no JSON: {error}"))),
        Err(_) => to_raw_value(value).map_err(|error| Error::failed("--var", &error))?,
    };
    vars.insert(name.into(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_goes_before_the_file_and_what_is_no_json_is_a_text() {
        let mut vars = of_file("x", r#"{"a": 1.10, "b": "file"}"#).unwrap();
        for given in ["b=flag", "c=[1]", "d=a=b", "e=", "f=007"] {
            add(&mut vars, given).unwrap();
        }
        let text = serde_json::to_string(&vars).unwrap();
        assert_eq!(text, r#"{"a":1.10,"b":"flag","c":[1],"d":"a=b","e":"","f":"007"}"#);
    }

    #[test]
    fn what_cannot_be_read_is_wrong_use() {
        for given in ["gateway", "=x", "list=[1", "text=\"x"] {
            assert_eq!(add(&mut Vars::new(), given).unwrap_err().exit_code(), 2, "{given}");
        }
        assert_eq!(of_file("x", "[1]").unwrap_err().exit_code(), 2);
    }
}
