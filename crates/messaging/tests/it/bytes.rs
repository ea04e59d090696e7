//! What waits is bounded by its bytes, too, and not by its number alone.

use crate::network::{Count, ms, node, pass, secs, two};
use bytes::{Bytes, BytesMut};
use std::future::IntoFuture;
use steadfast_messaging::envelope::{self, Body, Hello, Sample};
use steadfast_messaging::wire::memory::Memory;
use steadfast_messaging::wire::{Gone, Link, Pulse, Remote};
use steadfast_messaging::{Class, Code, Failure, Node, Peer};
use tokio::sync::{mpsc, watch};

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
    node.accept(Link { outgoing, incoming, remote: Remote::default(), pulse: Pulse::default(), gone: Gone::default() })
        .await
        .unwrap();
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

#[tokio::test(start_paused = true)]
async fn what_nobody_takes_of_the_streams_of_a_connection_is_bounded_by_its_bytes() {
    let (_network, a, b) = two(1);
    let reads = watch::Sender::new(false);
    let may_read = reads.subscribe();
    b.route_streams("slow", move |mut stream, _| {
        let mut may_read = may_read.clone();
        async move {
            may_read.wait_for(|may| *may).await.unwrap();
            while stream.next().await?.is_some() {}
            Ok(())
        }
    });
    let mut streams = Vec::new();
    for _ in 0..10 {
        let mut stream = a.stream("b", "slow", "").await.unwrap();
        for _ in 0..2 {
            stream.send(vec![0; 4 * MIB]).await.unwrap();
        }
        streams.push(stream);
    }
    pass(ms(100)).await;
    assert_eq!(b.counts().streams, 8, "8 MiB each");
    for mut given_up in streams.split_off(8) {
        assert_eq!(given_up.next().await.unwrap_err().code, Code::ResourceExhausted);
    }
    let failure = a.stream("b", "slow", "and the first payload counts").await.unwrap_err();
    assert_eq!((failure.code, failure.class), (Code::ResourceExhausted, Class::Transient));
    reads.send_replace(true);
    for mut stream in streams {
        stream.send(vec![0; 4 * MIB]).await.unwrap();
        stream.finish();
        assert_eq!(stream.next().await.unwrap(), None, "all of it was taken");
    }
    a.stream("b", "slow", vec![0; 4 * MIB]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn as_many_streams_as_there_may_be_get_on_with_what_is_left_for_each() {
    let (_network, a, b) = two(1);
    b.route_streams("mirror", |mut stream, _| async move {
        while let Some(piece) = stream.next().await? {
            stream.send(piece).await?;
        }
        Ok(())
    });
    let mut streams = Vec::new();
    for _ in 0..256 {
        streams.push(a.stream("b", "mirror", "").await.unwrap());
    }
    let mut mirrored = Vec::new();
    for mut stream in streams {
        mirrored.push(tokio::spawn(async move {
            for length in [10, 100_000, 200_000, 1, 65_536] {
                stream.send(vec![0; length]).await.unwrap();
                assert_eq!(stream.next().await.unwrap().unwrap().len(), length);
            }
        }));
    }
    for mirrored in mirrored {
        mirrored.await.unwrap();
    }
}
