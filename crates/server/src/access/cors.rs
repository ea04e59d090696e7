//! Pages of other origins: none, unless they are configured.

use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

/// The origins whose pages may use the API.
pub(crate) struct Cors(Vec<String>);

impl Cors {
    pub(crate) fn new(origins: &[String]) -> Self {
        Cors(origins.iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase()).collect())
    }

    /// Whether pages of that origin may.
    pub(crate) fn allows(&self, origin: &str) -> bool {
        self.0.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }

    /// The origin that a request comes from, if its pages may.
    pub(crate) fn origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        if self.0.is_empty() {
            return None;
        }
        headers
            .get(ORIGIN)
            .filter(|origin| origin.to_str().is_ok_and(|origin| self.allows(origin)))
            .cloned()
    }

    /// What a browser is told that asks before it sends something; nothing if that is not what it does.
    pub(crate) fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<Response> {
        if *method != Method::OPTIONS || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return None;
        }
        let origin = self.origin(headers)?;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        allow(&mut response, origin);
        let said = response.headers_mut();
        said.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE"));
        let allowed = HeaderValue::from_static("authorization, content-type, idempotency-key, last-event-id, x-request-id");
        said.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        said.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        Some(response)
    }
}

/// Has the browser show the answer to pages of that origin.
pub(crate) fn allow(response: &mut Response, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("retry-after, x-request-id"));
    headers.append(VARY, HeaderValue::from_static("origin"));
}
