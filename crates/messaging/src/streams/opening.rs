//! Opening a stream: once, and for as long as a call may take.

use super::Stream;
use crate::envelope::{Body, Open};
use crate::limits::TRACE_MAX;
use crate::names;
use crate::node::{Node, Peer};
use crate::sending::TIMEOUT;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::fmt;
use std::future::IntoFuture;
use steadfast_kernel::{Code, Failure};

/// A stream that is going to be opened: awaited, it is. Made by [`Node::stream`].
#[must_use = "it is opened when it is awaited"]
#[derive(Clone)]
pub struct Opening {
    node: Node,
    peer: Peer,
    route: String,
    payload: Bytes,
    trace: String,
}

impl Opening {
    pub(crate) fn new(node: Node, peer: Peer, route: String, payload: Bytes) -> Self {
        Opening { node, peer, route, payload, trace: String::new() }
    }

    /// The trace that it belongs to, as a W3C `traceparent`.
    pub fn trace(mut self, trace: impl Into<String>) -> Self {
        self.trace = trace.into();
        self
    }

    fn check(&self) -> Result<(), Failure> {
        names::check_route(&self.route)?;
        names::check_peer(self.peer.text())?;
        match () {
            () if self.trace.len() > TRACE_MAX => {
                Err(Failure::new(Code::InvalidArgument, format!("a trace has at most {TRACE_MAX} bytes")))
            }
            () if self.payload.len() > self.node.limits().payload_bytes_max => {
                Err(Failure::new(Code::InvalidArgument, "the first payload of a stream is too long"))
            }
            () => Ok(()),
        }
    }

    async fn open(self) -> Result<Stream, Failure> {
        self.check()?;
        let Opening { node, peer, route, payload, trace } = self;
        let opening = async {
            let connection = node.inner.know(&peer)?.connection().await?;
            connection.takes(payload.len())?;
            let mut stream = connection.streams.begin(&connection)?;
            let (number, credit) = stream.number_and_credit();
            let open = Body::Open(Open { number, route, trace, credit, payload });
            if !connection.outgoing.push(&open).await {
                return Err(Failure::transient(format!("the connection to {peer} was cut"))); // perhaps before the stream was among those that hear of it
            }
            stream.accepted().await?;
            Ok(stream)
        };
        match tokio::time::timeout(TIMEOUT, opening).await {
            Ok(stream) => stream,
            Err(_) => Err(Failure::new(Code::DeadlineExceeded, format!("{peer} did not take the stream in time"))),
        }
    }
}

/// Without the payload, which is nobody's business.
impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening")
            .field("peer", &self.peer)
            .field("route", &self.route)
            .field("bytes", &self.payload.len())
            .finish_non_exhaustive()
    }
}

impl IntoFuture for Opening {
    type Output = Result<Stream, Failure>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}
