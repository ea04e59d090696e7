//! Bytes that belong to the user, kept as they came.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How the bytes of a [`Payload`] are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Encoding {
    /// JSON text.
    Json,
    /// Bytes of which nothing is known.
    Bytes,
}

impl Encoding {
    /// The stored name.
    pub fn as_str(self) -> &'static str {
        match self {
            Encoding::Json => "json",
            Encoding::Bytes => "bytes",
        }
    }

    /// The encoding of that stored name.
    pub fn parse(name: &str) -> Option<Self> {
        [Encoding::Json, Encoding::Bytes].into_iter().find(|encoding| encoding.as_str() == name)
    }
}

/// An input, an output or a result: exact bytes with an encoding tag. The engine never looks inside.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Saved", from = "Saved")]
pub struct Payload {
    /// How to read the bytes.
    pub encoding: Encoding,
    /// The bytes, exactly as they came.
    pub bytes: Bytes,
}

/// A payload in a snapshot: text where people can read it.
#[derive(Serialize, Deserialize)]
struct Saved {
    encoding: Encoding,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bytes: Vec<u8>,
}

impl From<Payload> for Saved {
    fn from(Payload { encoding, bytes }: Payload) -> Self {
        match String::from_utf8(bytes.into()) {
            Ok(text) => Saved { encoding, text: Some(text), bytes: Vec::new() },
            Err(other) => Saved { encoding, text: None, bytes: other.into_bytes() },
        }
    }
}

impl From<Saved> for Payload {
    fn from(Saved { encoding, text, bytes }: Saved) -> Self {
        Payload { encoding, bytes: text.map_or(bytes, String::into_bytes).into() }
    }
}

impl Payload {
    /// A payload of JSON text. The text is not checked.
    pub fn json(bytes: impl Into<Bytes>) -> Self {
        Payload { encoding: Encoding::Json, bytes: bytes.into() }
    }

    /// A payload of which nothing is known: what a message brought, readable or not.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Payload { encoding: Encoding::Bytes, bytes: bytes.into() }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if there are no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Shows encoding and size, never the content: payloads do not reach logs.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({}, {} bytes)", self.encoding.as_str(), self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_does_not_show_the_content() {
        assert_eq!(format!("{:?}", Payload::json("\"secret\"")), "Payload(json, 8 bytes)");
        assert_eq!(format!("{:?}", Payload::bytes("secret")), "Payload(bytes, 6 bytes)");
    }

    #[test]
    fn an_encoding_is_known_by_its_name() {
        for encoding in [Encoding::Json, Encoding::Bytes] {
            assert_eq!(Encoding::parse(encoding.as_str()), Some(encoding));
        }
        assert_eq!(Encoding::parse("text"), None);
    }

    #[test]
    fn every_byte_survives_being_saved() {
        let payload = Payload::bytes((0..=255).collect::<Vec<u8>>());
        let saved = serde_json::to_string(&payload).unwrap();
        assert_eq!(serde_json::from_str::<Payload>(&saved).unwrap(), payload);
    }
}
