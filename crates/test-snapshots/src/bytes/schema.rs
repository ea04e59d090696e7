//! Finds the protobuf fields that a decoder knows, one at a time.

use super::protobuf::{FIXED32, FIXED64, LENGTH, put_key};
use std::collections::BTreeMap;

/// The highest number that is tried.
const TAG_MAX: u64 = 127;

/// The fields that a decoder knows, and which of them a page has shown.
pub struct Schema {
    pub(super) fields: BTreeMap<u64, Field>,
}

pub(super) struct Field {
    pub(super) kind: Kind,
    pub(super) shown: bool,
}

pub(super) enum Kind {
    Number,
    Text,
    Bytes,
    Message(Schema),
}

impl Schema {
    /// Finds the fields; `accepts` is whether the decoder takes those bytes. Messages must not
    /// contain themselves.
    pub fn of(accepts: impl Fn(&[u8]) -> bool) -> Self {
        probe(&accepts)
    }

    /// Fails if a field is not on the page.
    ///
    /// # Panics
    /// Names the missing fields by the paths of their numbers.
    pub fn assert_shown(&self) {
        let missing = self.missing("");
        assert!(missing.is_empty(), "the snapshot lacks a value of the fields {missing:?}; add one to the list of values");
    }

    fn missing(&self, path: &str) -> Vec<String> {
        let mut missing = Vec::new();
        for (tag, field) in &self.fields {
            match &field.kind {
                _ if !field.shown => missing.push(format!("{path}{tag}")),
                Kind::Message(schema) => missing.extend(schema.missing(&format!("{path}{tag}."))),
                Kind::Number | Kind::Text | Kind::Bytes => {}
            }
        }
        missing
    }
}

fn probe(accepts: &dyn Fn(&[u8]) -> bool) -> Schema {
    let known = (1..=TAG_MAX).filter(|tag| is_known(*tag, accepts));
    Schema { fields: known.map(|tag| (tag, Field { kind: kind(tag, accepts), shown: false })).collect() }
}

/// A decoder passes over an unknown field of any type, and rejects a known one of a wrong type.
fn is_known(tag: u64, accepts: &dyn Fn(&[u8]) -> bool) -> bool {
    let with = |wire, content: &[u8]| {
        let mut bytes = Vec::new();
        put_key(tag, wire, &mut bytes);
        bytes.extend_from_slice(content);
        bytes
    };
    !accepts(&with(FIXED64, &[0; 8])) || !accepts(&with(FIXED32, &[0; 4]))
}

fn kind(tag: u64, accepts: &dyn Fn(&[u8]) -> bool) -> Kind {
    let takes = |content: &[u8]| accepts(&delimited(tag, content));
    match () {
        () if !takes(b"") => Kind::Number,
        () if !takes(b"a") => Kind::Message(probe(&takes)), // as a message it is a field without its value
        () if !takes(b"\xff") => Kind::Text,
        () => Kind::Bytes,
    }
}

fn delimited(tag: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_key(tag, LENGTH, &mut bytes);
    super::protobuf::put_varint(content.len() as u64, &mut bytes);
    bytes.extend_from_slice(content);
    bytes
}
