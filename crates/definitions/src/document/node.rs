//! The tree of a document.

use crate::problem::Report;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use serde_saphyr::{Location, Options, Spanned};
use std::fmt;

/// Where something stands, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl At {
    /// The very beginning of the file.
    pub(crate) const START: At = At { line: 1, column: 1 };
}

impl From<Location> for At {
    fn from(location: Location) -> Self {
        At { line: location.line().max(1), column: location.column().max(1) }
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) at: At,
    pub(crate) value: Value,
}

/// The name of a field and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) at: At,
    pub(crate) name: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

impl Node {
    /// What it is, for messages.
    pub(crate) fn what(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The value without places.
    pub(crate) fn json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(truth) => Json::Bool(*truth),
            Value::Number(number) => Json::Number(number.clone()),
            Value::Text(text) => Json::String(text.clone()),
            Value::List(items) => items.iter().map(Node::json).collect(),
            Value::Map(entries) => entries.iter().map(|(key, node)| (key.name.clone(), node.json())).collect(),
        }
    }
}

/// Reads the one document of a text. What is wrong goes into the report.
pub(crate) fn parse(text: &str, report: &mut Report) -> Option<Node> {
    let mut options = Options::default();
    options.strict_booleans = true;
    options.with_snippet = false;
    match serde_saphyr::from_str_with_options(text, options) {
        Ok(node) => Some(node),
        Err(error) => {
            let at = error.location().map_or(At::START, At::from);
            let (message, help) = explain(&error.to_string(), at, text);
            report.add(at, message, help);
            None
        }
    }
}

/// What the parser says, in the words of one who writes a definition.
fn explain(said: &str, at: At, text: &str) -> (String, Option<String>) {
    let said = said.rsplit_once(" at line ").map_or(said, |(said, _)| said);
    let line = usize::try_from(at.line - 1).ok().and_then(|line| text.lines().nth(line)).unwrap_or_default();
    if let Some(key) = said.strip_prefix("duplicate mapping key: ") {
        let key = key.split_once(", set ").map_or(key, |(key, _)| key);
        return (format!("the field `{key}` stands here a second time"), None);
    }
    if said.starts_with("multiple YAML documents") {
        return (
            "there is a second document in this file".into(),
            Some("one file has one definition; move it to a file of its own".into()),
        );
    }
    if said == "expected string scalar" {
        let help = if line.contains("{{") {
            "a template that begins with `{{` has to stand in quotes: \"{{ … }}\""
        } else {
            "names of fields are plain text"
        };
        return ("this is not YAML that can be understood".into(), Some(help.into()));
    }
    (format!("this is not YAML: {said}"), None)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Node { at: referenced.into(), value })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<String>::deserialize(deserializer)?;
        Ok(Key { at: referenced.into(), name: value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        serde_json::Number::from_f64(number)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number without end"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.into()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }
}
