//! The end of links that listens, as a service for any router: every stream that is opened on [`PATH`](super::PATH) becomes a link.

use super::codec::Raw;
use super::errors::status;
use super::link::{Outgoing, Side, link};
use super::moving::{Coming, Going};
use super::{PATH, Settings};
use crate::wire::{Link, Pulse, Remote};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use steadfast_kernel::Failure;
use tokio::sync::mpsc;
use tonic::Status;
use tonic::body::Body;
use tonic::codec::{EncodeBody, Streaming};

/// What messages of gRPC are called.
const GRPC: &str = "application/grpc";

/// Decides by its bearer token (if it has sent one), its address and its certificate whether somebody may make a link, and may say who it is.
pub type Authorize = Arc<dyn Fn(Option<&str>, &mut Remote) -> Result<(), Failure> + Send + Sync>;

/// Takes links on [`PATH`](super::PATH), for a router that has a port already:
///
/// ```
/// # use steadfast_messaging::wire::http2::{PATH, Service, Settings};
/// let (links, _accepted) = tokio::sync::mpsc::channel(16);
/// let router: axum::Router = axum::Router::new().route_service(PATH, Service::new(Settings::default(), links));
/// ```
///
/// Whoever serves it may put a [`Remote`] into the extensions of the request, which becomes that of the link. No time limit, no limit of the body and no compression may be in front of it.
#[derive(Clone)]
pub struct Service {
    settings: Settings,
    links: mpsc::Sender<Link>,
    authorize: Option<Authorize>,
}

impl Service {
    /// Hands links to that channel. While it is full, those who connect wait; once it is closed, they are refused.
    pub fn new(settings: Settings, links: mpsc::Sender<Link>) -> Self {
        Service { settings, links, authorize: None }
    }

    /// Asks that before a link is made.
    #[must_use]
    pub fn authorized_by(mut self, authorize: Authorize) -> Self {
        self.authorize = Some(authorize);
        self
    }

    async fn open<B>(self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        if let Some(refused) = misunderstood(&parts) {
            return refused;
        }
        let mut remote = parts.extensions.get::<Remote>().cloned().unwrap_or_default();
        if let Some(Err(refused)) = self.authorize.map(|authorize| authorize(bearer(&parts.headers), &mut remote)) {
            tracing::debug!(address = remote.address, "a link was refused: {refused:?}");
            return status(&refused).into_http();
        }
        let Ok(place) = self.links.reserve_owned().await else {
            return Status::unavailable("nobody takes links here any more").into_http();
        };
        let (max, pulse) = (self.settings.packet_bytes_max, Pulse::default());
        let packets = Streaming::<Bytes>::new_request(Raw, Coming::new(body, pulse.clone()), None, Some(max));
        let (outgoing, sent) = Outgoing::new(Side::Server, max);
        let ending = sent.ending();
        let body = EncodeBody::new_server(Raw, sent, None, Default::default(), None);
        let body = Going::new(body, pulse.clone());
        place.send(link(outgoing, packets, ending, remote, pulse));
        let mut response = Response::new(Body::new(body));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
        response
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<B> tower_service::Service<Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.open(request).await) })
    }
}

/// The answer to whoever does not open a stream of gRPC here.
fn misunderstood(parts: &http::request::Parts) -> Option<Response<Body>> {
    let is_grpc = |kind: &HeaderValue| kind.as_bytes().starts_with(GRPC.as_bytes());
    let problem = if parts.version != Version::HTTP_2 {
        StatusCode::HTTP_VERSION_NOT_SUPPORTED
    } else if parts.method != Method::POST {
        StatusCode::METHOD_NOT_ALLOWED
    } else if !parts.headers.get(CONTENT_TYPE).is_some_and(is_grpc) {
        StatusCode::UNSUPPORTED_MEDIA_TYPE
    } else if parts.uri.path() != PATH {
        return Some(Status::unimplemented("there is no such method").into_http());
    } else {
        return None;
    };
    let mut response = Response::new(Body::default());
    *response.status_mut() = problem;
    Some(response)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
