//! What waits is bounded by its bytes, too, and not by its number alone.

use crate::network::{Count, ms, node, pass, secs};
use bytes::{Bytes, BytesMut};
use std::future::IntoFuture;
use steadfast_messaging::envelope::{self, Body, Hello, Sample};
use steadfast_messaging::wire::memory::Memory;
use steadfast_messaging::wire::{Link, Remote};
use steadfast_messaging::{Failure, Node, Peer};
use tokio::sync::mpsc;

const MIB: usize = 1 << 20;

fn packet(body: &Body) -> Bytes {
    let mut packet = BytesMut::new();
    envelope::append(&mut packet, body);
    packet.freeze()
}

/// Who speaks for a node `w` that is connected to that one, and what waits at its wire, which takes many packets.
async fn wide(node: &Node) -> (mpsc::Sender<Result<Bytes, Failure>>, mpsc::Receiver<Bytes>) {
    let ((outgoing, mut wire), (says, incoming)) = (mpsc::channel(1000), mpsc::channel(1));
    let hello = Hello { version: 1, node: "w".into(), frame_bytes_max: 8 << 20, refused: None };
    says.send(Ok(packet(&Body::Hello(hello)))).await.unwrap();
    node.accept(Link { outgoing, incoming, remote: Remote::default() }).await.unwrap();
    wire.recv().await.expect("a hello");
    (says, wire)
}

#[tokio::test(start_paused = true)]
async fn few_bytes_wait_at_a_wire_however_many_packets_it_takes() {
    let network = Memory::new(1);
    let a = node(&network, "a");
    let (_says, mut wire) = wide(&a).await;
    let call = |bytes: usize| drop(tokio::spawn(a.call(Peer::named("w"), "x", vec![0; bytes]).into_future()));
    (0..12).for_each(|_| call(MIB));
    pass(ms(100)).await;
    let (mut waiting, mut read) = (0, 0);
    while let Ok(packet) = wire.try_recv() {
        waiting += packet.len();
    }
    assert!((MIB..=2 * MIB).contains(&waiting), "{waiting} bytes wait");
    pass(ms(100)).await;
    while let Ok(packet) = wire.try_recv() {
        read += packet.len();
        pass(ms(1)).await;
    }
    assert!(waiting + read >= 12 * MIB, "the rest follows as it is taken: {read}");
}

#[tokio::test(start_paused = true)]
async fn samples_that_wait_are_bounded_by_their_bytes_on_either_side() {
    let network = Memory::new(1);
    let a = node(&network, "a");
    let (says, mut wire) = wide(&a).await;
    (0..20).for_each(|_| a.sample(Peer::named("w"), "s", vec![0; MIB]).unwrap());
    let mut sent = 0;
    while let Ok(Some(packet)) = tokio::time::timeout(ms(100), wire.recv()).await {
        sent += packet.len();
    }
    assert_eq!(sent / MIB, 8);
    let handled = Count::default();
    let handles = handled.clone();
    a.route_samples("s", move |_| {
        handles.add();
        pass(ms(100))
    });
    for _ in 0..20 {
        let sample = Sample { route: "s".into(), payload: Bytes::from(vec![0; MIB]) };
        says.send(Ok(packet(&Body::Sample(sample)))).await.unwrap();
    }
    pass(secs(10)).await;
    assert!((8..=9).contains(&handled.get()), "the one that is dealt with, and 8 MiB: {}", handled.get());
}
