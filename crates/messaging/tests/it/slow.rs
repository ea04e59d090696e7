//! Real sockets over a slow line: what is long takes long, and is no reason to take anybody for dead.

use crate::network::{Count, echo, ms, pass, secs};
use bytes::Bytes;
use std::future::IntoFuture;
use std::net::SocketAddr;
use steadfast_messaging::wire::http2::{Http2, Settings};
use steadfast_messaging::{Builder, Limits, Node, Peer, Policy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::Instant;

/// So many bytes go over the line in a second, in each direction.
const RATE: usize = 1 << 20;

/// Little is on its way at once, as on a real line.
const BUFFER: u32 = 32 << 10;

/// A line to that port: where it begins, and how many connections were made over it.
async fn line(to: SocketAddr) -> (SocketAddr, Count) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(BUFFER).unwrap();
    socket.set_send_buffer_size(BUFFER).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener: TcpListener = socket.listen(16).unwrap();
    let (addr, count) = (listener.local_addr().unwrap(), Count::default());
    let connections = count.clone();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            connections.add();
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(BUFFER).unwrap();
            let far = socket.connect(to).await.unwrap();
            tokio::spawn(async move {
                let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
                tokio::join!(carry(near_read, far_write), carry(far_read, near_write))
            });
        }
    });
    (addr, count)
}

/// Carries bytes from one end to the other, as fast as the line is.
async fn carry(mut from: tokio::net::tcp::OwnedReadHalf, mut to: tokio::net::tcp::OwnedWriteHalf) {
    let (mut buffer, mut ticks) = ([0; RATE / 100], tokio::time::interval(ms(10)));
    loop {
        ticks.tick().await;
        match from.read(&mut buffer).await {
            Ok(0) | Err(_) => return drop(to.shutdown().await),
            Ok(count) => drop(to.write_all(&buffer[..count]).await),
        }
    }
}

/// A node that soon takes a silent peer for dead.
fn impatient(name: &str) -> Builder {
    let mut limits = Limits::default();
    (limits.ping_after, limits.dead_after) = (ms(500), ms(2000));
    Node::builder().name(name).limits(limits).wire(std::sync::Arc::new(Http2::new(Settings::default())))
}

/// Each of the long ones takes longer than a peer may be silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_messages_on_a_slow_line_arrive_over_one_connection_and_short_ones_beside_them() {
    let (bank, shop) = (impatient("bank").bind("127.0.0.1:0").await.unwrap(), impatient("shop").build().unwrap());
    echo(&bank, "echo");
    let (addr, connections) = line(bank.addr().unwrap()).await;
    let peer = Peer::at(format!("http://{addr}"));
    let begun = Instant::now();
    let long = Bytes::from(vec![7; 7 << 19]);
    let call = |payload: Bytes| shop.call(&peer, "echo", payload).timeout(secs(60)).policy(Policy::once().attempt_timeout(secs(60)));
    let longs = (0..2).map(|_| call(long.clone()).into_future());
    let shorts = async {
        for number in 0..20 {
            let payload = Bytes::from(format!("short {number}"));
            assert_eq!(call(payload.clone()).await.unwrap(), payload);
            pass(ms(100)).await;
        }
    };
    let (longs, ()) = tokio::join!(futures_util::future::join_all(longs), shorts);
    assert!(longs.into_iter().all(|answer| answer.unwrap() == long));
    assert!(begun.elapsed() > secs(5), "the line was not slow: {:?}", begun.elapsed());
    assert_eq!(connections.get(), 1, "it was never cut");
}

/// A node that has a process to itself, as far as it can tell: as soon as it is closed, nothing of it runs any more. It is closed when ten calls wait, which are answered at that moment.
fn last_answers_of(begin: impl AsyncFnOnce() -> Node + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let node = begin().await;
            let (open, opened) = tokio::sync::watch::channel(false);
            node.route("gate", move |incoming| {
                let mut opened = opened.clone();
                async move {
                    let _it_is_open = opened.wait_for(|open| *open).await;
                    Ok::<Bytes, steadfast_messaging::Failure>(incoming.payload)
                }
            });
            crate::network::until("all are there", || node.counts().requests == 10).await;
            let closing = node.close(secs(5));
            open.send(true).unwrap();
            closing.await;
        });
    })
}

/// All ten are answered by that peer.
async fn are_answered(node: &Node, peer: &Peer, round: usize) {
    let call = |length| node.call(peer, "gate", vec![7; length]).policy(Policy::once()).into_future();
    let lengths = (0..10).map(|number| 150_000 * number);
    let answers = futures_util::future::join_all(lengths.clone().map(call)).await;
    for (answer, length) in answers.into_iter().zip(lengths) {
        assert_eq!(answer.map(|answer| answer.len()), Ok(length), "round {round}");
    }
}

/// What was answered before a port was closed arrives, though the process has nothing else to do any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_answers_of_a_node_that_closes_arrive() {
    for round in 0..10 {
        let (says, addr) = tokio::sync::oneshot::channel();
        let bank = last_answers_of(async move || {
            let bank = Node::bind("127.0.0.1:0").await.unwrap();
            says.send(bank.addr().unwrap()).unwrap();
            bank
        });
        let peer = Peer::at(format!("http://{}", addr.await.unwrap()));
        are_answered(&impatient("shop").build().unwrap(), &peer, round).await;
        bank.join().unwrap();
    }
}

/// The same where it has connected itself, as a worker does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_answers_of_a_node_that_has_connected_and_closes_arrive() {
    for round in 0..10 {
        let bank = Node::bind("127.0.0.1:0").await.unwrap();
        echo(&bank, "echo");
        let peer = Peer::at(format!("http://{}", bank.addr().unwrap()));
        let (says, connected) = tokio::sync::oneshot::channel();
        let worker = last_answers_of(async move || {
            let worker = impatient("worker").build().unwrap();
            worker.call(&peer, "echo", "").await.unwrap();
            says.send(()).unwrap();
            worker
        });
        connected.await.unwrap();
        are_answered(&bank, &Peer::named("worker"), round).await;
        worker.join().unwrap();
    }
}
