//! A call of gRPC for every packet, over one connection: what a link is compared with.

use bytes::{Buf, BufMut, Bytes};
use futures_util::future::BoxFuture;
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Calls again and again, so that always so many calls are on their way; gives how many are answered per second.
pub(crate) async fn echo(packet: Bytes, in_flight: usize, time: Duration) -> anyhow::Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let stream = TcpStream::connect(listener.local_addr()?).await?;
    stream.set_nodelay(true)?;
    let (far, _) = listener.accept().await?;
    far.set_nodelay(true)?;
    let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    server.max_concurrent_streams(1024);
    drop(tokio::spawn(server.serve_connection(TokioIo::new(far), service_fn(answer))));
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    drop(tokio::spawn(connection));
    let (began, count) = (Instant::now(), Arc::new(AtomicU32::new(0)));
    let callers: Vec<_> = (0..in_flight)
        .map(|_| tokio::spawn(call(Caller(sender.clone()), packet.clone(), began + time, count.clone())))
        .collect();
    for caller in callers {
        caller.await??;
    }
    Ok(f64::from(count.load(Ordering::Relaxed)) / began.elapsed().as_secs_f64())
}

async fn call(caller: Caller, packet: Bytes, until: Instant, count: Arc<AtomicU32>) -> Result<(), Status> {
    let mut client = tonic::client::Grpc::with_origin(caller, Uri::from_static("http://localhost"));
    while Instant::now() < until {
        let path = PathAndQuery::from_static("/steadfast.messaging.v1.Messaging/Echo");
        client.unary(tonic::Request::new(packet.clone()), path, Raw).await?;
        count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

async fn answer(request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    Ok(tonic::server::Grpc::new(Raw).unary(Same, request).await)
}

struct Same;

impl tower_service::Service<tonic::Request<Bytes>> for Same {
    type Response = tonic::Response<Bytes>;
    type Error = Status;
    type Future = std::future::Ready<Result<tonic::Response<Bytes>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        std::future::ready(Ok(tonic::Response::new(request.into_inner())))
    }
}

struct Caller(SendRequest<Body>);

impl tower_service::Service<Request<Body>> for Caller {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, Result<Response<Incoming>, hyper::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

#[derive(Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, packet: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(packet);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
