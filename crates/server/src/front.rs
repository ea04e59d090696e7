//! What stands before the paths: who may come in, how many at once, for how long; and what every answer carries.

use crate::access;
use crate::app::App;
use crate::ask::canonical;
use crate::links::Door;
use crate::pages;
use crate::problem::Problem;
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use futures_util::FutureExt;
use http::header::{ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use std::hash::{BuildHasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use steadfast_kernel::code;
use tower::Service;
use tower_http::CompressionLevel;
use tower_http::compression::predicate::{And, NotForContentType, SizeAbove};
use tower_http::compression::{Compression, Predicate};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Smaller answers are not worth compressing.
const COMPRESS_FROM: u16 = 1024;

/// Paths that are answered without a token and however much is going on.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// What stands before the paths.
pub(crate) struct Front {
    app: Arc<App>,
    router: Router,
    compressed: Compression<Router, And<SizeAbove, NotForContentType>>,
    /// Tells the requests of this process from those of others.
    process: u64,
    requests: AtomicU64,
}

impl Front {
    pub(crate) fn new(app: Arc<App>, router: Router) -> Self {
        let when = SizeAbove::new(COMPRESS_FROM).and(NotForContentType::SSE);
        let compressed = Compression::new(router.clone()).quality(CompressionLevel::Fastest).compress_when(when);
        Front { app, router, compressed, process: RandomState::new().hash_one(()), requests: AtomicU64::new(0) }
    }

    /// Answers a request, whatever happens.
    pub(crate) async fn answer<B>(&self, request: Request<B>) -> Response
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let (uri, id) = (request.uri().clone(), self.request_id(&request));
        let reader = pages::reader(uri.path(), request.headers());
        let origin = self.app.access.cors.origin(request.headers());
        let mut response = match self.admit(request).await {
            Ok(response) => response,
            Err(problem) => problem.render(uri.path(), reader),
        };
        if let Some(problem) = response.extensions_mut().remove::<Problem>() {
            let allow = response.headers_mut().remove(ALLOW);
            response = problem.render(uri.path(), reader);
            allow.and_then(|allow| response.headers_mut().insert(ALLOW, allow));
        }
        if let Some(origin) = origin {
            access::allow(&mut response, origin);
        }
        if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(request = ?id, path = uri.path(), "a request came to a point that it should never come to");
        }
        let headers = response.headers_mut();
        headers.insert(REQUEST_ID, id);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        response
    }

    /// Lets a request in, or does not.
    async fn admit<B>(&self, request: Request<B>) -> Result<Response, Problem>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let app = &*self.app;
        app.access.check_site(request.method(), request.uri(), request.headers())?;
        if let Some(response) = app.access.cors.preflight(request.method(), request.headers()) {
            return Ok(response);
        }
        if PROBES.contains(&request.uri().path()) || request.uri().path().starts_with(pages::ASSETS) {
            return self.route(request.map(Body::new)).await;
        }
        app.access.check_token(request.headers())?;
        if let (true, Some(door)) = (Door::leads_to(request.uri().path()), &app.door) {
            return Ok(door.open(request, &app.access).await);
        }
        let too_many =
            |_| Problem::new(code::TOO_MANY_REQUESTS, "as many requests as may be under way are (in_flight_max); come back later");
        let _permit = app.in_flight.try_acquire().map_err(too_many)?;
        self.route(request.map(Body::new)).await
    }

    /// Has the request answered within its time.
    async fn route(&self, mut request: Request<Body>) -> Result<Response, Problem> {
        if let Some(path) = canonical(request.uri().path()) {
            *request.uri_mut() = with_path(request.uri(), &path)?;
        }
        let limit = self.time_for(request.method(), request.uri().path());
        let answer = AssertUnwindSafe(self.call(request)).catch_unwind();
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(_)) => Err(Problem::new(code::INTERNAL, "a mistake in the server; its log has the details, under the request's id")),
            Err(_) => Err(Problem::new(code::TIMED_OUT, "the answer took too long; look whether the change was made, or ask again")),
        }
    }

    async fn call(&self, request: Request<Body>) -> Response {
        if request.headers().contains_key(ACCEPT_ENCODING) {
            let answer = self.compressed.clone().call(request).await;
            return answer.map_or_else(|never| match never {}, |response| response.map(Body::new));
        }
        self.router.clone().call(request).await.unwrap_or_else(|never| match never {})
    }

    /// How long a request may take: those that may wait for a run have more.
    fn time_for(&self, method: &Method, path: &str) -> Duration {
        let config = &self.app.config;
        let may_wait = (*method == Method::POST && path == "/v1/runs") || path.ends_with("/result");
        if may_wait { config.request_time + config.wait_max } else { config.request_time }
    }

    /// The id that the client has given the request, or one of ours.
    fn request_id<B>(&self, request: &Request<B>) -> HeaderValue {
        let fits = |id: &&HeaderValue| (1..=128).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic);
        if let Some(id) = request.headers().get(REQUEST_ID).filter(fits) {
            return id.clone();
        }
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        HeaderValue::try_from(format!("{:08x}-{number}", self.process >> 32)).unwrap_or(HeaderValue::from_static("none"))
    }
}

/// The same address with another path.
fn with_path(uri: &Uri, path: &str) -> Result<Uri, Problem> {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let wrong = |_| Problem::bad_request("the path cannot be read");
    Uri::try_from(format!("{path}{query}")).map_err(wrong)
}
