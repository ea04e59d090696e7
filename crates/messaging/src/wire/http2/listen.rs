//! A port of its own for links over HTTP/2.

use super::errors::io_failure;
use super::link::LINGER;
use super::service::{Authorize, Service};
use super::{FRAME_BYTES, Settings};
use crate::places::{Place, Places};
use crate::wire::{Link, Remote, tls, until};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use steadfast_kernel::Failure;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Status;
use tonic::body::Body;
use tower_service::Service as _;

/// How long no connection is taken after one could not be: usually too many files are open.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// How long somebody who was refused has to see why.
const REFUSED: Duration = Duration::from_secs(1);

/// Connections beyond those that a node takes, for those who are told that there are too many.
pub const REFUSED_MAX: usize = 64;

/// What a port for links takes.
#[derive(Clone)]
#[non_exhaustive]
pub struct ListenSettings {
    /// What both ends have.
    pub link: Settings,
    /// Connections; one more is cut at once, and those from one address leave a fifth of them to others. Some more than the node takes, so that it can say to those that it does not take that there are too many.
    pub connections_max: usize,
    /// The longest headers of a request, in bytes.
    pub headers_bytes_max: u32,
    /// How long a connection may be there without a link.
    pub idle_timeout: Duration,
    /// Whether TLS is spoken, and how.
    pub tls: Option<tls::Server>,
    /// Who may make a link; without it everybody who gets so far.
    pub authorize: Option<Authorize>,
}

impl Default for ListenSettings {
    fn default() -> Self {
        ListenSettings {
            link: Settings::default(),
            connections_max: 1024 + REFUSED_MAX,
            headers_bytes_max: 16 << 10,
            idle_timeout: Duration::from_secs(5),
            tls: None,
            authorize: None,
        }
    }
}

impl ListenSettings {
    /// Whether somebody who connects has to prove who it is.
    pub(crate) fn asks_who_connects(&self) -> bool {
        self.authorize.is_some() || self.tls.as_ref().is_some_and(tls::Server::asks_who_connects)
    }
}

impl fmt::Debug for ListenSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenSettings")
            .field("link", &self.link)
            .field("connections_max", &self.connections_max)
            .field("headers_bytes_max", &self.headers_bytes_max)
            .field("idle_timeout", &self.idle_timeout)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// A port for links. Dropping it closes the port; its links have a moment to send what was put into them before.
#[derive(Debug)]
pub struct Listening {
    addr: SocketAddr,
    over: DropGuard,
    /// Closed when the last connection has ended.
    ended: mpsc::Sender<Never>,
}

/// What is never sent.
#[derive(Debug)]
enum Never {}

impl Listening {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Closes the port, and waits until its connections have ended: what was put into links that are cut by now is sent, if the other end takes it within a moment.
    pub async fn close(self) {
        let Listening { over, ended, .. } = self;
        drop(over);
        ended.closed().await;
    }
}

/// Takes links on a port of its own, and hands them to that channel.
///
/// # Errors
/// If the address cannot be taken.
pub async fn listen(
    addr: impl ToSocketAddrs + fmt::Debug,
    settings: ListenSettings,
    links: mpsc::Sender<Link>,
) -> Result<Listening, Failure> {
    let name = format!("{addr:?}");
    let cannot_listen = |error: std::io::Error| {
        let mut failure = io_failure(&name, &error);
        failure.message = format!("cannot listen on {name}: {error}");
        failure
    };
    let listener = TcpListener::bind(addr).await.map_err(cannot_listen)?;
    let addr = listener.local_addr().map_err(cannot_listen)?;
    let over = CancellationToken::new();
    let mut service = Service::new(settings.link.clone(), links);
    if let Some(authorize) = &settings.authorize {
        service = service.authorized_by(Arc::clone(authorize));
    }
    let (ended, serving) = mpsc::channel(1);
    let port = Arc::new(Port { http: http(&settings), service, settings, over: over.clone(), _serving: serving });
    drop(tokio::spawn(port.accept(listener)));
    Ok(Listening { addr, over: over.drop_guard(), ended })
}

fn http(settings: &ListenSettings) -> Builder<TokioExecutor> {
    let mut http = Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .initial_stream_window_size(settings.link.window_bytes)
        .initial_connection_window_size(settings.link.window_bytes)
        .max_frame_size(FRAME_BYTES)
        .max_concurrent_streams(1)
        .max_header_list_size(settings.headers_bytes_max)
        .keep_alive_interval(settings.link.ping_after)
        .keep_alive_timeout(settings.link.ping_timeout);
    http
}

struct Port {
    settings: ListenSettings,
    service: Service,
    http: Builder<TokioExecutor>,
    over: CancellationToken,
    /// Gone with the last connection.
    _serving: mpsc::Receiver<Never>,
}

impl Port {
    async fn accept(self: Arc<Self>, listener: TcpListener) {
        let places = Places::new(self.settings.connections_max);
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.over.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted.map(|(stream, from)| (stream, from, places.take(Some(from.ip())))) {
                Ok((stream, from, Ok(place))) => drop(tokio::spawn(Arc::clone(&self).connection(stream, from, place))),
                Ok((_, from, Err(full))) => tracing::debug!(%from, ?full, "a connection was cut: there are too many"),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    until(Some(Instant::now() + ACCEPT_AGAIN)).await;
                }
            }
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, from: SocketAddr, _place: Place<IpAddr>) {
        let _it_is_slower_without = stream.set_nodelay(true);
        let mut remote = Remote { address: from.to_string(), ..Remote::default() };
        let Some(tls) = &self.settings.tls else { return self.serve(stream, remote).await };
        let accepting = timeout(self.settings.idle_timeout, tls.accept(stream, &mut remote));
        match self.over.run_until_cancelled(accepting).await {
            None => {} // it has no link yet, and nothing to be sent
            Some(Ok(Ok(stream))) => self.serve(stream, remote).await,
            Some(Ok(Err((error, stream)))) => {
                tracing::info!(%from, %error, "a connection was refused");
                let _it_is_gone = timeout(REFUSED, drain(stream)).await;
            }
            Some(Err(_)) => tracing::debug!(%from, "a connection without TLS was cut"),
        }
    }

    /// Serves a connection until it ends, has been idle for too long, or the port is closed.
    async fn serve<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, stream: T, remote: Remote) {
        let (busy, _) = watch::channel(());
        let service = service_fn(|mut request: http::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(remote.clone());
            let (mut service, busy) = (self.service.clone(), busy.subscribe());
            async move { service.call(request).await.map(|answer| answer.map(|body| Busy { body, _busy: busy })) }
        });
        let mut serving = std::pin::pin!(self.http.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            biased;
            () = self.over.cancelled() => {
                serving.as_mut().graceful_shutdown(); // its link may be cut already, and its last packets not sent
                let _it_takes_too_long = timeout(LINGER, serving).await;
            }
            ended = &mut serving => if let Err(error) = ended {
                tracing::debug!(%error, "a connection has ended early");
            },
            () = idle(&busy, self.settings.idle_timeout) => tracing::debug!(from = remote.address, "a connection without a link was cut"),
        }
    }
}

/// Reads what is still coming from somebody who was refused: if the connection was closed before, they might not see why.
async fn drain(mut stream: TcpStream) -> std::io::Result<()> {
    stream.shutdown().await?;
    let mut bytes = [0; 1024];
    while stream.read(&mut bytes).await? > 0 {}
    Ok(())
}

/// Ends once a connection has been without a stream twice in a row, half of that time apart.
async fn idle(busy: &watch::Sender<()>, timeout: Duration) {
    let mut times = 0;
    while times < 2 {
        until(Some(Instant::now() + timeout / 2)).await;
        times = if busy.receiver_count() == 0 { times + 1 } else { 0 };
    }
}

/// What goes out on a stream; while it is there, the connection is not idle.
struct Busy {
    body: Body,
    _busy: watch::Receiver<()>,
}

impl http_body::Body for Busy {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
