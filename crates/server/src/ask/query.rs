//! Query parameters, read strictly: what is not known, given twice, or of another type is an error that names it.

use crate::problem::Problem;
use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, Error as _, IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// The parameters of a request.
pub(crate) struct Query<T>(pub(crate) T);

/// A request that has none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parse(parts.uri.query().unwrap_or_default().as_bytes()).map(Query)
    }
}

/// What stands in a query, or in a form, which is written in the same way.
pub(super) fn parse<T: DeserializeOwned>(written: &[u8]) -> Result<T, Problem> {
    read(written).map_err(|Wrong(why)| Problem::bad_request(why))
}

fn read<T: DeserializeOwned>(written: &[u8]) -> Result<T, Wrong> {
    T::deserialize(Pairs(form_urlencoded::parse(written).collect()))
}

/// What is wrong with a query.
#[derive(Debug)]
struct Wrong(String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

impl serde::de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Wrong(message.to_string())
    }
}

struct Pairs<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'de> Deserializer<'de> for Pairs<'de> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_map(MapDeserializer::new(self.0.into_iter().map(|(name, value)| (name.to_string(), Value { name, value }))))
    }

    /// Here the names are known that may be given.
    fn deserialize_struct<V: Visitor<'de>>(self, _: &'static str, known: &'static [&'static str], visitor: V) -> Result<V::Value, Wrong> {
        let mut seen = BTreeSet::new();
        for (name, _) in &self.0 {
            if !known.contains(&&**name) {
                return Err(Wrong(unknown(name, known)));
            }
            if !seen.insert(name.clone()) {
                return Err(Wrong(format!("the parameter {name} is given twice")));
            }
        }
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

fn unknown(name: &str, known: &[&str]) -> String {
    let name: String = name.chars().take(100).collect();
    match nearest(&name, known) {
        _ if known.is_empty() => format!("there is no parameter {name:?}; this path takes none"),
        Some(meant) => format!("there is no parameter {name:?}; did you mean {meant:?}?"),
        None => format!("there is no parameter {name:?}; there are: {}", known.join(", ")),
    }
}

/// What was probably meant.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&name.to_ascii_lowercase(), &known.to_ascii_lowercase()), *known));
    near.filter(|(distance, known)| *distance <= 1 + known.len() / 4).min().map(|(_, known)| known)
}

/// A value with its name, so that what is wrong with it can be said.
struct Value<'a> {
    name: Cow<'a, str>,
    value: Cow<'a, str>,
}

impl<'de> IntoDeserializer<'de, Wrong> for Value<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl Value<'_> {
    fn wrong(&self, expected: &str) -> Wrong {
        let value: String = self.value.chars().take(100).collect();
        Wrong(format!("{} is {value:?}; {expected}", self.name))
    }

    fn number(&self) -> Result<u64, Wrong> {
        self.value.parse().map_err(|_| self.wrong("it has to be a whole number"))
    }
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_string(self.value.into_owned())
    }

    /// What is given is there; an empty text is one that was left out, as forms send it.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self.value.is_empty() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_u64(self.number()?)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let number = u32::try_from(self.number()?).map_err(|_| self.wrong("that is too much"))?;
        visitor.visit_u32(number)
    }

    fn deserialize_enum<V: Visitor<'de>>(self, _: &'static str, known: &'static [&'static str], visitor: V) -> Result<V::Value, Wrong> {
        if known.contains(&&*self.value) {
            return visitor.visit_enum(self.value.into_owned().into_deserializer());
        }
        let meant = nearest(&self.value, known).map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
        Err(self.wrong(&format!("{meant}it has to be one of {}", known.join(", "))))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}

/// A number within bounds.
pub(crate) fn within(name: &str, value: Option<u64>, range: std::ops::RangeInclusive<u64>, otherwise: u64) -> Result<u64, Problem> {
    let value = value.unwrap_or(otherwise);
    if range.contains(&value) {
        return Ok(value);
    }
    let wrong = Wrong::custom(format!("{name} is {value}; it has to be from {} to {}", range.start(), range.end()));
    Err(Problem::bad_request(wrong.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::Status;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Asked {
        status: Option<Status>,
        tenant: Option<String>,
        wait_ms: Option<u64>,
        attempt: Option<u32>,
    }

    fn why(query: &str) -> String {
        read::<Asked>(query.as_bytes()).unwrap_err().0
    }

    #[test]
    fn parameters_are_read() {
        let asked = Asked { status: Some(Status::Failed), tenant: Some("a b/c".into()), wait_ms: Some(5), attempt: None };
        assert_eq!(read::<Asked>(b"status=FAILED&tenant=a+b%2Fc&waitMs=5").unwrap(), asked);
        assert_eq!(read::<Asked>(b"").unwrap(), Asked::default());
        assert_eq!(read::<Asked>(b"status=&tenant=&waitMs=").unwrap(), Asked::default(), "as forms send what was left out");
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(why("statsu=FAILED"), "there is no parameter \"statsu\"; did you mean \"status\"?");
        assert_eq!(why("zzz=1"), "there is no parameter \"zzz\"; there are: status, tenant, waitMs, attempt");
        assert_eq!(why("waitMs=-1"), "waitMs is \"-1\"; it has to be a whole number");
        assert_eq!(why("attempt=4294967296"), "attempt is \"4294967296\"; that is too much");
        assert_eq!(why("tenant=a&tenant=b"), "the parameter tenant is given twice");
        assert!(why("status=failed").starts_with("status is \"failed\"; did you mean FAILED? it has to be one of READY, "));
        assert_eq!(read::<Nothing>(b"x=1").map(|_| ()).unwrap_err().0, "there is no parameter \"x\"; this path takes none");
    }
}
