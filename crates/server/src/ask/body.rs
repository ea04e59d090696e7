//! JSON bodies, read whole and parsed strictly.

use crate::app::App;
use crate::problem::Problem;
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use steadfast_kernel::code;

/// A body that has to be there.
pub(crate) struct Body<T>(pub(crate) T);

/// A body that may be left out.
pub(crate) struct Optional<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let (is_json, bytes) = read(request, app).await?;
        if !is_json {
            return Err(not_json());
        }
        parse(&bytes).map(Body)
    }
}

impl<T: DeserializeOwned + Default> FromRequest<Arc<App>> for Optional<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let (is_json, bytes) = read(request, app).await?;
        match (bytes.is_empty(), is_json) {
            (true, _) => Ok(Optional(T::default())),
            (false, true) => parse::<Option<T>>(&bytes).map(|body| Optional(body.unwrap_or_default())),
            (false, false) => Err(not_json()),
        }
    }
}

/// The whole body, and whether it says that it is JSON. Who sends it slowly keeps others out, and has no longer than for the head.
pub(super) async fn read(request: Request, app: &App) -> Result<(bool, Bytes), Problem> {
    let max = app.config.body_bytes_max;
    let is_json = is_json(request.headers());
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > max) {
        return Err(too_large(max));
    }
    let body = tokio::time::timeout(app.config.head_time, axum::body::to_bytes(request.into_body(), max)).await;
    let too_slow = |_| Problem::new(code::TIMED_OUT, "the body did not come in time; send it faster");
    let bytes = body.map_err(too_slow)?.map_err(|error| {
        let is_length = std::error::Error::source(&error).is_some_and(|source| source.is::<http_body_util::LengthLimitError>());
        if is_length { too_large(max) } else { Problem::bad_request("the body was cut off; send it again") }
    })?;
    Ok((is_json, bytes))
}

/// A list would be taken for the fields in their order, which nobody means.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(Problem::bad_request("the body is a list; it has to be an object"));
    }
    serde_json::from_slice(bytes).map_err(|error| Problem::bad_request(format!("the body cannot be read: {error}")))
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return false };
    let kind = value.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

fn not_json() -> Problem {
    Problem::new(code::MEDIA_TYPE, "send the body as JSON, with the header Content-Type: application/json")
}

fn too_large(max: usize) -> Problem {
    let detail = format!("the body has more than {max} bytes; keep large data elsewhere and pass its address");
    Problem::new(code::PAYLOAD_TOO_LARGE, detail)
}
