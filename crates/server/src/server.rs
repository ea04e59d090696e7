//! The server: it listens, takes connections, and stops in order.

use crate::access::Access;
use crate::api;
use crate::app::{App, Catalogue};
use crate::config::Config;
use crate::error::Error;
use crate::front::Front;
use crate::links::{Carrier, Door, Links};
use crate::wire::Wire;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use metrics_exporter_prometheus::PrometheusHandle;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use steadfast_messaging::Node;
use steadfast_runtime::Engine;
use steadfast_runtime::clock::{Clock, SystemClock};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// How long no connection is taken after one could not be: usually too many files are open.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// How many requests of one HTTP/2 connection may be under way at once.
const STREAMS_MAX: u32 = 256;

/// What a server may know beside the engine.
#[derive(Default)]
pub struct Parts {
    /// Workflows from definitions.
    pub catalogue: Option<Arc<dyn Catalogue>>,
    /// What `/metrics` shows.
    pub metrics: Option<PrometheusHandle>,
    /// Takes the links that other nodes make at the address of the API. Without one there are no messages.
    pub node: Option<Node>,
}

/// An address that was taken, for a server to come. Whoever connects meanwhile waits.
pub struct Socket {
    listener: TcpListener,
    addr: SocketAddr,
    access: Access,
}

impl Socket {
    /// Takes the address.
    ///
    /// # Errors
    /// If others could reach it and there is no token, the token is no good, or the address cannot be taken.
    pub async fn bind(config: &Config) -> Result<Self, Error> {
        let mut access = Access::new(config)?;
        let listen = config.listen;
        let cannot_listen = |source| Error::CannotListen { listen, source };
        let listener = TcpListener::bind(listen).await.map_err(cannot_listen)?;
        let addr = listener.local_addr().map_err(cannot_listen)?;
        access.listens_on(addr);
        Ok(Socket { listener, addr, access })
    }

    /// Where it is.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

/// A server that has its address. It answers once it is [served](Server::serve).
pub struct Server {
    listener: TcpListener,
    addr: SocketAddr,
    front: Arc<Front>,
    http: Arc<auto::Builder<TokioExecutor>>,
    app: Arc<App>,
    links: Links,
}

impl Server {
    /// Takes the address.
    ///
    /// # Errors
    /// As [`Socket::bind`].
    pub async fn bind(config: Config, engine: Engine, parts: Parts) -> Result<Self, Error> {
        Ok(Server::on(Socket::bind(&config).await?, config, engine, parts))
    }

    /// A server at that address, which was taken with the same settings.
    pub fn on(socket: Socket, config: Config, engine: Engine, parts: Parts) -> Self {
        let Socket { listener, addr, access } = socket;
        let http = Arc::new(http(&config));
        let app = Arc::new(App {
            engine,
            access,
            catalogue: parts.catalogue,
            metrics: parts.metrics,
            door: parts.node.map(Door::new),
            openapi: OnceLock::new(),
            in_flight: Semaphore::new(config.in_flight_max),
            readers: Arc::new(Semaphore::new(config.feed_readers_max)),
            closing: CancellationToken::new(),
            config,
        });
        let front = Arc::new(Front::new(Arc::clone(&app), api::router(&app)));
        Server { listener, addr, front, http, app, links: Links::default() }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The connections that carry links of other nodes, for whoever waits for their end after the node was closed.
    pub fn links(&self) -> Links {
        self.links.clone()
    }

    /// Answers requests until told to stop; then lets those under way end, within the grace period. Streams end at once, and those who wait for a run are
    /// told how it stands. The engine and the node are left alone: [links](Server::links) last until the node is closed.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let (open, mut all_closed) = mpsc::channel::<Infallible>(1);
        let over = CancellationToken::new();
        let mut shutdown = pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, from)) => {
                    let carrier = Carrier::new(from, self.links.clone(), open.clone());
                    drop(tokio::spawn(self.connection(stream, over.clone(), carrier)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    SystemClock.sleep(ACCEPT_AGAIN).await;
                }
            }
        }
        drop((self.listener, open));
        self.app.closing.cancel();
        if tokio::time::timeout(self.app.config.shutdown_grace, all_closed.recv()).await.is_err() {
            tracing::warn!("requests were still under way at the end of the grace period");
        }
        over.cancel();
    }

    /// One connection, until it ends.
    fn connection(&self, stream: TcpStream, over: CancellationToken, carrier: Carrier) -> impl Future<Output = ()> + use<> {
        let (front, http, app) = (Arc::clone(&self.front), Arc::clone(&self.http), Arc::clone(&self.app));
        async move {
            let _it_is_slower_without = stream.set_nodelay(true);
            let wire = Wire::new(stream, app.config.head_time, app.config.stall_time);
            let of_requests = carrier.clone();
            let service = service_fn(move |mut request: http::Request<Incoming>| {
                let front = Arc::clone(&front);
                request.extensions_mut().insert(of_requests.clone());
                async move { Ok::<_, Infallible>(front.answer(request).await) }
            });
            let mut connection = pin!(http.serve_connection(TokioIo::new(wire), service));
            let ended = tokio::select! {
                biased;
                ended = connection.as_mut() => ended,
                () = app.closing.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        biased;
                        ended = connection.as_mut() => ended,
                        () = over.cancelled(), if !carrier.has_a_link() => Ok(()),
                    }
                }
            };
            if let Err(error) = ended {
                tracing::debug!(error, "a connection has ended early");
            }
        }
    }
}

fn http(config: &Config) -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new()).header_read_timeout(config.head_time);
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(config.stall_time)
        .keep_alive_timeout(config.stall_time * 2); // the answer waits behind what is on its way, which may be long and the line slow
    http
}
