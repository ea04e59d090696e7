//! A call of gRPC for every packet, over one connection, by the client and the server that come with tonic: what a link is compared with.

use crate::load::{Span, slice};
use bytes::{Buf, BufMut, Bytes};
use futures_util::future::BoxFuture;
use http::uri::PathAndQuery;
use http::{Request, Response};
use std::convert::Infallible;
use std::task::{Context, Poll};
use tokio::net::TcpListener;
use tonic::Status;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};

/// So many calls on their way at once, measured as calls of a node are; gives how many are answered per second.
pub(crate) async fn echo(packet: Bytes, in_flight: usize, span: Span) -> anyhow::Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let serving = tokio::spawn(Server::builder().add_service(Echo).serve_with_incoming(incoming));
    let channel = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true).connect().await?;
    let seen = slice(in_flight, span, move || call(channel.clone(), packet.clone())).await?;
    serving.abort();
    Ok(seen.per_s())
}

async fn call(channel: Channel, packet: Bytes) -> anyhow::Result<()> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await?;
    let path = PathAndQuery::from_static("/steadfast.bench.Echo/Echo");
    client.unary(tonic::Request::new(packet), path, Raw).await?;
    Ok(())
}

/// The service, as code made from a description of it would have it.
#[derive(Clone)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "steadfast.bench.Echo";
}

impl tower_service::Service<Request<Body>> for Echo {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(async move { Ok(tonic::server::Grpc::new(Raw).unary(Same, request).await) })
    }
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
