//! What the forms of pages send, read as strictly as parameters are.

use super::body::read;
use super::query::parse;
use crate::app::App;
use crate::problem::Problem;
use axum::extract::{FromRequest, Request};
use http::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use steadfast_kernel::code;

/// A form that was filled in.
pub(crate) struct Form<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Form<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(Problem::new(code::MEDIA_TYPE, "this path takes what the form of its page sends; programs use the API below /v1"));
        }
        let (_, bytes) = read(request, app).await?;
        parse(&bytes).map(Form)
    }
}
