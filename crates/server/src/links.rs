//! Links of other nodes, on the port of the API: a request that stays, and carries messages both ways.
//!
//! Who may make one is who may use the API. What bounds requests does not bound a link: it may last for ever, and has the limits of the node.
//!
//! Tested by `crates/cli/tests/it/messages.rs`.

use crate::access::{Access, PRINCIPAL, Token};
use crate::error::Error;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use parking_lot::Mutex;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use steadfast_kernel::{Code, Failure};
use steadfast_messaging::Node;
use steadfast_messaging::wire::Remote;
use steadfast_messaging::wire::http2::{Authorize, PATH, Service, Settings};
use tokio::sync::{mpsc, watch};
use tower::Service as _;

/// The connections of a server that carry links. They are not cut when the server has ended, so that what is answered is still written: they end when the node closes them.
#[derive(Clone, Debug, Default)]
pub struct Links(Arc<watch::Sender<usize>>);

impl Links {
    /// How many there are.
    pub fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Ends when there are none.
    pub async fn closed(&self) {
        let mut counts = self.0.subscribe();
        let _the_sender_is_here = counts.wait_for(|count| *count == 0).await;
    }
}

/// Lets in who shows the token of that file, for a port of the node's own: the same rule, and the same name for whoever comes in, as at the address of the API.
///
/// # Errors
/// If the token file cannot be used.
pub fn authorize_by(token_file: &Path) -> Result<Authorize, Error> {
    let token = Token::read(token_file)?;
    Ok(Arc::new(move |shown, remote| match shown {
        Some(shown) if token.is(shown.as_bytes()) => {
            remote.principal = Some(PRINCIPAL.into());
            Ok(())
        }
        _ => Err(Failure::new(Code::PermissionDenied, "the token is missing or wrong")),
    }))
}

/// Takes links for a node.
pub(crate) struct Door {
    service: Service,
    pub(crate) node: Node,
}

impl Door {
    pub(crate) fn new(node: Node) -> Self {
        Door { service: Service::new(Settings::default(), node.links()), node }
    }

    /// Whether that request wants a link.
    pub(crate) fn leads_to(path: &str) -> bool {
        path == PATH
    }

    /// Makes a link of a request that may be one.
    pub(crate) async fn open<B>(&self, mut request: Request<B>, access: &Access) -> Response
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let carrier = request.extensions_mut().remove::<Carrier>();
        let address = carrier.as_ref().map(|carrier| carrier.0.from.to_string()).unwrap_or_default();
        request
            .extensions_mut()
            .insert(Remote { address, principal: access.principal(), ..Remote::default() });
        let response = self.service.clone().call(request).await.unwrap_or_else(|never| match never {});
        if let (Some(carrier), true) = (carrier, response.status().is_success()) {
            carrier.carries_a_link();
        }
        response.map(Body::new)
    }
}

/// A connection, as a request on it knows it.
#[derive(Clone)]
pub(crate) struct Carrier(Arc<Carried>);

struct Carried {
    from: SocketAddr,
    links: Links,
    /// Is there while the server waits for the connection when it stops.
    open: Mutex<Option<mpsc::Sender<Infallible>>>,
}

impl Carrier {
    pub(crate) fn new(from: SocketAddr, links: Links, open: mpsc::Sender<Infallible>) -> Self {
        Carrier(Arc::new(Carried { from, links, open: Mutex::new(Some(open)) }))
    }

    fn carries_a_link(&self) {
        if self.0.open.lock().take().is_some() {
            self.0.links.0.send_modify(|count| *count += 1);
        }
    }

    /// Whether it is more than a connection for requests.
    pub(crate) fn has_a_link(&self) -> bool {
        self.0.open.lock().is_none()
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if self.open.get_mut().is_none() {
            self.links.0.send_modify(|count| *count -= 1);
        }
    }
}
