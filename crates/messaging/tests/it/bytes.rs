//! What waits is bounded by its bytes, too, and not by its number alone.

use crate::network::{ms, node, pass};
use bytes::{Bytes, BytesMut};
use std::future::IntoFuture;
use steadfast_messaging::envelope::{self, Body, Hello};
use steadfast_messaging::wire::memory::Memory;
use steadfast_messaging::wire::{Link, Remote};
use steadfast_messaging::{Failure, Node, Peer};
use tokio::sync::mpsc;

const MIB: usize = 1 << 20;

/// Who speaks for a node `w` that is connected to that one, and what waits at its wire, which takes many packets.
async fn wide(node: &Node) -> (mpsc::Sender<Result<Bytes, Failure>>, mpsc::Receiver<Bytes>) {
    let ((outgoing, mut wire), (says, incoming)) = (mpsc::channel(1000), mpsc::channel(1));
    let mut hello = BytesMut::new();
    envelope::append(&mut hello, &Body::Hello(Hello { version: 1, node: "w".into(), frame_bytes_max: 8 << 20, refused: None }));
    says.send(Ok(hello.freeze())).await.unwrap();
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
