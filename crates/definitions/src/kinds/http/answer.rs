//! The answer to a request: success, or a failure of the class that its status says.

use super::Expect;
use crate::answered::{refused, unreachable};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName};
use serde_json::{Map, Value as Json, json};
use steadfast_kernel::{Code, Failure};
use steadfast_runtime::clock::{Clock, SystemClock};

/// An answer whose body has not been read.
pub(super) struct Answer {
    /// Who was asked, for messages.
    pub(super) target: String,
    pub(super) response: Response,
    pub(super) bytes_max: usize,
}

impl Answer {
    /// What the step returns, or why it has failed.
    pub(super) async fn output(self, expect: Expect) -> Result<Json, Failure> {
        let (status, headers) = (self.response.status(), self.response.headers().clone());
        if !status.is_success() {
            return Err(refused(&self.target, status, &headers, SystemClock.now()));
        }
        let target = self.target.clone();
        let body = decode(&self.bytes().await?, &headers, expect)
            .ok_or_else(|| Failure::poison(format!("{target} answered {} with a body that is not JSON", status.as_u16())))?;
        Ok(json!({ "status": status.as_u16(), "headers": as_json(&headers), "body": body }))
    }

    /// The body, as long as it is not too large.
    async fn bytes(mut self) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.response.chunk().await.map_err(|error| unreachable(&self.target, &error))? {
            if bytes.len() + chunk.len() > self.bytes_max {
                let message = format!(
                    "{} answered with more than {} bytes; keep large data elsewhere and pass its address",
                    self.target, self.bytes_max
                );
                return Err(Failure::permanent(message).code(Code::ResourceExhausted));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}

/// The body of an answer; nothing if it was to be JSON and is not.
fn decode(bytes: &[u8], headers: &HeaderMap, expect: Expect) -> Option<Json> {
    let says_json = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(is_json);
    match expect {
        Expect::AsItSays if says_json && bytes.is_empty() => Some(Json::Null),
        Expect::AsItSays if !says_json => Some(text(bytes)),
        Expect::Text => Some(text(bytes)),
        Expect::Json | Expect::AsItSays => serde_json::from_slice(bytes).ok(),
    }
}

fn text(bytes: &[u8]) -> Json {
    Json::String(String::from_utf8_lossy(bytes).into_owned())
}

/// `application/json`, `application/problem+json` and the like.
fn is_json(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media == "application/json" || media.ends_with("+json")
}

fn as_json(headers: &HeaderMap) -> Json {
    let value = |name: &HeaderName| {
        let values: Vec<_> = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        Json::String(values.join(", "))
    };
    Json::Object(headers.keys().map(|name| (name.to_string(), value(name))).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    fn headers<const N: usize>(pairs: [(HeaderName, &'static str); N]) -> HeaderMap {
        pairs.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn json_is_asked_for_by_the_answer_or_by_the_step() {
        let (json, plain) = (headers([(CONTENT_TYPE, "application/problem+json; charset=utf-8")]), headers([(CONTENT_TYPE, "text/plain")]));
        assert_eq!(decode(b"{\"a\":1}", &json, Expect::AsItSays), Some(json!({"a": 1})));
        assert_eq!(decode(b"{\"a\":1}", &plain, Expect::AsItSays), Some(json!("{\"a\":1}")));
        assert_eq!(decode(b"{\"a\":1}", &plain, Expect::Json), Some(json!({"a": 1})));
        assert_eq!(decode(b"{\"a\":1}", &json, Expect::Text), Some(json!("{\"a\":1}")));
        assert_eq!((decode(b"{", &json, Expect::AsItSays), decode(b"", &plain, Expect::Json)), (None, None));
        assert_eq!(decode(b"", &json, Expect::AsItSays), Some(Json::Null));
    }
}
