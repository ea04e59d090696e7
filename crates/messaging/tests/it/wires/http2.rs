//! The wire over HTTP/2 on real sockets: the contract, and what is its own.

use super::contract::{LONGEST, Links, contract, end, next};
use bytes::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure};
use steadfast_messaging::wire::http2::{Http2, ListenSettings, Listening, PATH, Service, Settings, listen};
use steadfast_messaging::wire::{Link, Wire};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

pub(super) struct Port {
    pub(super) wire: Http2,
    pub(super) address: String,
    pub(super) links: mpsc::Receiver<Link>,
    pub(super) listening: Listening,
}

impl Links for Port {
    async fn link(&mut self) -> (Link, Link) {
        let near = self.wire.connect(&self.address).await.unwrap();
        (near, self.links.recv().await.unwrap())
    }
}

impl Port {
    /// A port that takes what these settings say.
    pub(super) async fn with(set: impl FnOnce(&mut ListenSettings)) -> Self {
        let (sender, links) = mpsc::channel(4);
        let mut listens = ListenSettings::default();
        listens.link = settings();
        set(&mut listens);
        let scheme = if listens.tls.is_some() { "https" } else { "http" };
        let listening = listen("127.0.0.1:0", listens, sender).await.unwrap();
        Port { wire: Http2::new(settings()), address: format!("{scheme}://{}", listening.addr()), links, listening }
    }
}

pub(super) fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.packet_bytes_max = LONGEST;
    settings
}

async fn port() -> Port {
    Port::with(|_| {}).await
}

contract!(port(), tokio::test);

/// Waits for something that comes about without a signal.
async fn eventually<T, F: Future<Output = Option<T>>>(mut what: impl FnMut() -> F) -> T {
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    for _ in 0..1000 {
        ticks.tick().await;
        if let Some(done) = what().await {
            return done;
        }
    }
    panic!("it should have come about by now");
}

#[tokio::test]
async fn token_arrives_and_says_who_it_is() {
    let mut port = Port::with(|listens| {
        listens.authorize = Some(Arc::new(|token, remote| match token {
            Some("stf_right") => {
                remote.principal = Some("worker".into());
                Ok(())
            }
            _ => Err(Failure::new(Code::PermissionDenied, "that token is not known here")),
        }));
    })
    .await;
    for wire in [Http2::new(settings()), Http2::new(settings()).token("stf_wrong").unwrap()] {
        let refused = wire.connect(&port.address).await.unwrap_err();
        assert_eq!((refused.class, refused.code), (Class::Permanent, Code::PermissionDenied));
        assert!(refused.message.contains("that token is not known here"), "{refused:?}");
        assert!(!format!("{wire:?} {refused:?}").contains("stf_wrong"));
    }
    port.wire = port.wire.token("stf_right").unwrap();
    let (_near, far) = port.link().await;
    assert_eq!(far.remote.principal.as_deref(), Some("worker"));
    assert!(far.remote.address.starts_with("127.0.0.1:"), "{:?}", far.remote);
    assert!(Http2::new(settings()).token("two\nlines").is_err());
}

/// A server as that of the API: HTTP/1.1 and HTTP/2 on one port, told apart by how they begin.
async fn shared(router: axum::Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = TowerToHyperService::new(router.clone());
            tokio::spawn(
                async move { auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await.ok() },
            );
        }
    });
    address
}

#[tokio::test]
async fn links_share_a_port_with_http1() {
    let (sender, mut links) = mpsc::channel(4);
    let router = axum::Router::new().route("/", axum::routing::get(|| async { "hello" }));
    let address = shared(router.route_service(PATH, Service::new(settings(), sender))).await;
    let mut near = Http2::new(settings()).connect(&address).await.unwrap();
    let mut far = links.recv().await.unwrap();
    steadfast_tls::install_default();
    let http1 = reqwest::Client::builder().http1_only().build().unwrap();
    assert_eq!(http1.get(&address).send().await.unwrap().text().await.unwrap(), "hello");
    let refused = http1
        .post(format!("{address}{PATH}"))
        .header("content-type", "application/grpc")
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status().as_u16(), 505);
    near.outgoing.send("there".into()).await.unwrap();
    assert_eq!(next(&mut far).await, "there");
    far.outgoing.send("back".into()).await.unwrap();
    assert_eq!(next(&mut near).await, "back");
    drop(far);
    assert_eq!(end(&mut near).await.1, None);
}

#[tokio::test]
async fn server_without_messages_is_told_from_one_that_is_away() {
    let address = shared(axum::Router::new()).await;
    let refused = Http2::new(settings()).connect(&address).await.unwrap_err();
    assert_eq!((refused.class, refused.code), (Class::Permanent, Code::FailedPrecondition), "{refused:?}");
    assert!(refused.message.contains("no messages are taken there"), "{refused:?}");

    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let refused = Http2::new(settings()).connect(&format!("http://{gone}")).await.unwrap_err();
    assert_eq!((refused.class, refused.code), (Class::Transient, Code::Unavailable), "{refused:?}");

    let (sender, links) = mpsc::channel(1);
    drop(links);
    let address = shared(axum::Router::new().route_service(PATH, Service::new(settings(), sender))).await;
    let refused = Http2::new(settings()).connect(&address).await.unwrap_err();
    assert_eq!((refused.class, refused.code), (Class::Transient, Code::Unavailable), "{refused:?}");
}

#[tokio::test]
async fn what_is_no_address_is_refused_for_good() {
    for address in
        ["", "host:1", "ftp://host:1", "http://", "http://host:1/path", "http://user@host:1", "https://127.0.0.1:1/x", "http://a b"]
    {
        let refused = Http2::new(settings()).connect(address).await.unwrap_err();
        assert_eq!((refused.class, refused.code), (Class::Permanent, Code::InvalidArgument), "{address}: {refused:?}");
    }
}

#[tokio::test]
async fn a_password_in_an_address_is_not_told() {
    for address in
        ["http://ann:s3cret@host:1", "http://s3cret@host", "http://a@s3cret@host:1", "http://ann:s3 cret@host", "ann:s3cret@host"]
    {
        let refused = Http2::new(settings()).connect(address).await.unwrap_err();
        assert!(refused.message.contains("host") && !format!("{refused:?}").contains("s3"), "{refused:?}");
    }
}

#[tokio::test]
async fn server_that_speaks_http1_only_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = [0; 1024];
            let _read = stream.read(&mut bytes).await;
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
            while stream.read(&mut bytes).await.is_ok_and(|length| length > 0) {}
        }
    });
    let refused = timeout(Duration::from_secs(5), Http2::new(settings()).connect(&address))
        .await
        .unwrap()
        .unwrap_err();
    assert!(refused.class == Class::Permanent && refused.message.contains("HTTP/1 only"), "{refused:?}");
}

#[tokio::test]
async fn connections_have_a_limit_and_end_with_their_links() {
    let mut port = Port::with(|listens| listens.connections_max = 2).await;
    let _first = port.link().await;
    let second = port.link().await;
    let refused = port.wire.connect(&port.address).await.unwrap_err();
    assert_eq!(refused.class, Class::Transient, "{refused:?}");
    drop(second.0); // and with it the connection, which makes room
    let third = eventually(|| async { port.wire.connect(&port.address).await.ok() }).await;
    let mut far = port.links.recv().await.unwrap();
    third.outgoing.send("there".into()).await.unwrap();
    assert_eq!(next(&mut far).await, "there");
}

/// Nobody has proved anything by then, and nobody needs a link for that.
#[tokio::test]
async fn those_from_one_address_do_not_keep_others_out() {
    let mut port = Port::with(|listens| listens.connections_max = 10).await;
    let mut many = Vec::new();
    for _ in 0..20 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        many.push(socket.connect(port.listening.addr()).await.unwrap());
    }
    port.link().await;
    let mut left = 0;
    for stream in &mut many {
        left += usize::from(timeout(Duration::from_millis(100), stream.read_to_end(&mut Vec::new())).await.is_err());
    }
    assert_eq!(left, 8, "the others were cut");
}

#[tokio::test]
async fn connection_without_a_link_is_cut() {
    let port = Port::with(|listens| listens.idle_timeout = Duration::from_millis(100)).await;
    let mut stream = TcpStream::connect(port.listening.addr()).await.unwrap();
    let mut bytes = Vec::new();
    timeout(Duration::from_secs(5), stream.read_to_end(&mut bytes)).await.expect("it is cut").ok();
}

#[tokio::test]
async fn link_outlives_the_time_that_connections_may_be_idle() {
    let mut port = Port::with(|listens| listens.idle_timeout = Duration::from_millis(20)).await;
    let (near, mut far) = port.link().await;
    assert!(timeout(Duration::from_millis(300), far.incoming.recv()).await.is_err());
    near.outgoing.send("still there".into()).await.unwrap();
    assert_eq!(next(&mut far).await, "still there");
}

#[tokio::test]
async fn headers_that_are_too_long_are_refused() {
    let mut port = Port::with(|listens| listens.headers_bytes_max = 1024).await;
    let long = port.wire.clone().token(&"x".repeat(4096)).unwrap();
    assert!(long.connect(&port.address).await.is_err());
    port.link().await;
}

#[tokio::test]
async fn closing_the_port_cuts_its_links() {
    let mut port = port().await;
    let (mut near, mut far) = port.link().await;
    drop(port.listening);
    let reason = end(&mut near).await.1;
    assert!(reason.is_none_or(|reason| reason.class == Class::Transient));
    end(&mut far).await;
    let refused = port.wire.connect(&port.address).await.unwrap_err();
    assert_eq!(refused.class, Class::Transient, "{refused:?}");
}

#[tokio::test]
async fn receiver_refuses_by_its_own_limit_and_the_sender_is_told() {
    let mut port = Port::with(|listens| listens.link.packet_bytes_max = 1000).await;
    let (mut near, mut far) = port.link().await;
    near.outgoing.send(vec![1; 1001].into()).await.unwrap();
    let reason = end(&mut far).await.1.expect("a reason");
    assert_eq!((reason.class, reason.code), (Class::Permanent, Code::ResourceExhausted), "{reason:?}");
    end(&mut near).await;
}

#[tokio::test]
async fn length_is_refused_before_the_bytes_come() {
    let mut port = port().await;
    let stream = TcpStream::connect(port.listening.addr()).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .expect("a connection");
    tokio::spawn(connection);
    let claim = Bytes::from_static(&[0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]);
    let request = http::Request::post(format!("{}{PATH}", port.address)).header("content-type", "application/grpc");
    let answer = sender.send_request(request.body(axum::body::Body::from(claim)).unwrap()).await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    let mut far = port.links.recv().await.unwrap();
    let reason = end(&mut far).await.1.expect("a reason");
    assert_eq!((reason.class, reason.code), (Class::Permanent, Code::ResourceExhausted), "{reason:?}");
}

#[tokio::test]
async fn whoever_stops_waiting_for_a_link_leaves_nothing_behind() {
    let (sender, mut links) = mpsc::channel(1);
    let mut listens = ListenSettings::default();
    listens.connections_max = 2;
    let listening = listen("127.0.0.1:0", listens, sender).await.unwrap();
    let (wire, address) = (Http2::new(settings()), format!("http://{}", listening.addr()));
    let _first = wire.connect(&address).await.unwrap(); // fills the channel, so that the next one waits
    assert!(timeout(Duration::from_millis(100), wire.connect(&address)).await.is_err());
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Some(link) = links.recv().await {
            kept.push(link);
        }
    });
    let _third = eventually(|| async { wire.connect(&address).await.ok() }).await;
}
