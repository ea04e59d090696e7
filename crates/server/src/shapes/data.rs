//! What belongs to the user: inputs, outputs, results, signals.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use steadfast_kernel::Payload;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Any JSON, to the letter: numbers keep every digit, and nothing is put in another order. What is not JSON is shown as
/// `{"encoding", "base64"}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Data(pub Box<RawValue>);

impl Data {
    /// The JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// `null`.
    pub fn null() -> Self {
        Data(RawValue::NULL.to_owned())
    }

    /// The exact bytes, as the engine keeps them.
    pub fn into_payload(self) -> Payload {
        Payload::json(String::from(Box::<str>::from(self.0)))
    }
}

/// The same text; whether two texts mean the same is not asked.
impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

#[derive(Serialize)]
struct Encoded<'a> {
    encoding: &'a str,
    base64: String,
}

impl From<&Payload> for Data {
    fn from(payload: &Payload) -> Self {
        let json = serde_json::from_slice::<&RawValue>(&payload.bytes).map(ToOwned::to_owned);
        let encoded = || {
            let (encoding, base64) = (payload.encoding.as_str(), data_encoding::BASE64.encode(&payload.bytes));
            serde_json::value::to_raw_value(&Encoded { encoding, base64 })
        };
        Data(json.or_else(|_| encoded()).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl PartialSchema for Data {
    fn schema() -> RefOr<Schema> {
        let any = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
        any.description(Some("Any JSON, kept to the letter.")).build().into()
    }
}

impl ToSchema for Data {
    fn name() -> Cow<'static, str> {
        "Data".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_kept_to_the_letter() {
        let text = r#"{"b":1.10,"a":12345678901234567890123}"#;
        let data = Data::from(&Payload::json(text));
        assert_eq!(serde_json::to_string(&data).unwrap(), text);
        assert_eq!(&*data.into_payload().bytes, text.as_bytes());
    }

    #[test]
    fn what_is_not_json_is_shown_as_base64() {
        assert_eq!(Data::from(&Payload::json("{no")).as_str(), r#"{"encoding":"json","base64":"e25v"}"#);
        assert_eq!(Data::from(&Payload::json("")).as_str(), r#"{"encoding":"json","base64":""}"#);
    }
}
