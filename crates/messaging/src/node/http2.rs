//! Nodes on HTTP/2: a port of their own, or a place on somebody else's.

use super::{Builder, Node};
use crate::wire::Link;
use crate::wire::http2::{Http2, ListenSettings, Settings, listen};
use std::net::SocketAddr;
use std::sync::Arc;
use steadfast_kernel::{Code, Failure};
use tokio::net::lookup_host;
use tokio::sync::mpsc;

/// How many links wait to be greeted.
const BACKLOG: usize = 64;

impl Builder {
    /// The node, which listens at that address and connects to others over HTTP/2. Port 0 is any; [`Node::addr`] says which.
    ///
    /// # Errors
    /// If the address cannot be taken, or is one that other machines reach: there [`Node::listen`] says who may connect.
    pub async fn bind(mut self, addr: &str) -> Result<Node, Failure> {
        if self.wire.is_none() {
            self.wire = Some(Arc::new(Http2::new(Settings::default())));
        }
        let node = self.build()?;
        node.listen(addr, ListenSettings::default()).await?;
        Ok(node)
    }
}

impl Node {
    /// A node that listens at that address and connects to others over HTTP/2, with the default limits. Port 0 is any; [`Node::addr`] says which.
    ///
    /// # Errors
    /// As [`Builder::bind`].
    pub async fn bind(addr: &str) -> Result<Node, Failure> {
        Node::builder().bind(addr).await
    }

    /// Listens at one more address, until the node is closed or dropped.
    ///
    /// # Errors
    /// If the address cannot be taken, or if other machines reach it and nothing says who may connect.
    pub async fn listen(&self, addr: &str, settings: ListenSettings) -> Result<SocketAddr, Failure> {
        let unknown = |error: std::io::Error| Failure::new(Code::InvalidArgument, format!("{addr} is no address to listen on: {error}"));
        let addrs: Vec<_> = lookup_host(addr).await.map_err(unknown)?.collect();
        if !settings.asks_who_connects() && addrs.iter().any(|addr| !addr.ip().is_loopback()) {
            let message = format!("{addr} can be reached by other machines, and everybody could connect: ask for a token or a certificate");
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        let listening = listen(&addrs[..], settings, self.links()).await?;
        let addr = listening.addr();
        self.inner.listening.lock().push(listening);
        Ok(addr)
    }

    /// Where it listens first.
    pub fn addr(&self) -> Option<SocketAddr> {
        self.inner.listening.lock().first().map(|listening| listening.addr())
    }

    /// Takes the links that are sent there, as [`accept`](Self::accept) does; for a [`Service`](crate::wire::http2::Service) on somebody else's port. Closed once the node
    /// is.
    pub fn links(&self) -> mpsc::Sender<Link> {
        let (links, mut come) = mpsc::channel::<Link>(BACKLOG);
        let (node, closed) = (Arc::downgrade(&self.inner), self.inner.closed.clone());
        drop(tokio::spawn(async move {
            while let Some(Some(link)) = closed.run_until_cancelled(come.recv()).await {
                let Some(inner) = node.upgrade() else { return };
                tokio::spawn(async move {
                    let remote = link.remote.address.clone();
                    if let Err(failure) = (Node { inner }).accept(link).await {
                        tracing::debug!(remote, %failure, "a link was not taken");
                    }
                });
            }
        }));
        links
    }
}
