//! Streams: order, back-pressure, and every way to end.

use crate::network::{Count, Raw, ms, node, node_by, pass, secs, seed_or, two, until};
use bytes::Bytes;
use std::future::pending;
use std::sync::Arc;
use steadfast_messaging::envelope::{Body, Chunk, Close, Credit, Open, StreamId};
use steadfast_messaging::wire::memory::{Faults, Memory};
use steadfast_messaging::{Class, Code, Failure, Limits, Node, Stream};
use tokio::time::Instant;

/// Sends back what it gets, until the other side has finished.
fn mirror(node: &Node) {
    node.route_streams("mirror", |mut stream, _| async move {
        while let Some(piece) = stream.next().await? {
            stream.send(piece).await?;
        }
        stream.finish();
        Ok(())
    });
}

fn with_window(window: u32) -> Limits {
    let mut limits = Limits::default();
    limits.stream_window = window;
    limits
}

async fn all(stream: &mut Stream) -> Result<Vec<Bytes>, Failure> {
    let mut pieces = Vec::new();
    while let Some(piece) = stream.next().await? {
        pieces.push(piece);
    }
    Ok(pieces)
}

#[tokio::test(start_paused = true)]
async fn pieces_come_in_order_both_ways_and_either_side_finishes_for_itself() {
    let (_network, a, b) = two(1);
    b.route_streams("greet", |mut stream, incoming| async move {
        stream.send(incoming.payload).await?;
        stream.finish();
        let pieces = all(&mut stream).await?;
        assert_eq!(pieces.len(), 1000);
        Ok(())
    });
    mirror(&b);
    let mut stream = a.stream("b", "greet", "hello").await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "hello");
    assert_eq!(stream.next().await.unwrap(), None, "it has finished");
    for number in 0..1000 {
        stream.send(number.to_string()).await.unwrap();
    }
    stream.finish();
    assert_eq!(stream.send("more").await.unwrap_err().code, Code::FailedPrecondition);

    let mut stream = a.stream("b", "mirror", "").await.unwrap();
    for number in 0..1000 {
        stream.send(number.to_string()).await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), number.to_string());
    }
    stream.finish();
    assert_eq!(stream.next().await.unwrap(), None);
    until("nothing is open", || a.counts().streams + b.counts().streams == 0).await;
}

#[tokio::test(start_paused = true)]
async fn either_side_of_a_connection_may_open_a_stream() {
    let (_network, a, b) = two(1);
    mirror(&a);
    crate::network::echo(&b, "echo");
    a.call("b", "echo", "").await.unwrap();
    let mut stream = b.stream(steadfast_messaging::Peer::named("a"), "mirror", "").await.unwrap();
    stream.send("x").await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "x");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_does_not_read_stops_the_sender_and_memory_is_bounded() {
    let (network, a, b) = two(1);
    let (go, read) = (std::sync::Arc::new(tokio::sync::Notify::new()), Count::default());
    let (gone, reads) = (go.clone(), read.clone());
    b.route_streams("slow", move |mut stream, _| {
        let (gone, reads) = (gone.clone(), reads.clone());
        async move {
            gone.notified().await;
            while stream.next().await?.is_some() {
                reads.add();
            }
            Ok(())
        }
    });
    let mut stream = a.stream("b", "slow", "").await.unwrap();
    let sent = Count::default();
    let sends = sent.clone();
    let sending = tokio::spawn(async move {
        for _ in 0..1000 {
            stream.send(vec![0; 60 << 10]).await.unwrap();
            sends.add();
        }
        stream.finish();
        assert_eq!(stream.next().await.unwrap(), None);
    });
    pass(secs(30)).await;
    assert_eq!(sent.get(), 64, "as many as the window is wide");
    crate::network::echo(&b, "echo");
    a.call("b", "echo", "").await.unwrap();
    assert_eq!(network.counts().links, 1, "the connection is as good as ever for others");
    go.notify_one();
    sending.await.unwrap();
    until("all is read", || read.get() == 1000).await;
}

#[tokio::test(start_paused = true)]
async fn long_pieces_pass_whatever_the_windows_of_the_two_sides_are() {
    for (near, far) in [(64, 64), (2, 64), (64, 2), (2, 2), (3, 5), (1, 1000)] {
        let network = Memory::new(1);
        let (a, b) = (node_by(&network, "a", |n| n.limits(with_window(near))), node_by(&network, "b", |n| n.limits(with_window(far))));
        mirror(&b);
        let mut stream = a.stream("b", "mirror", "").await.unwrap();
        let lengths = [1, 1, 1, 4 << 20, 1, 70_000, 4 << 20, 4 << 20, 0, 3 << 20, 1].into_iter().cycle().take(60);
        for length in lengths {
            let passed = async {
                stream.send(vec![7; length]).await.unwrap();
                assert_eq!(stream.next().await.unwrap().unwrap().len(), length);
            };
            assert!(tokio::time::timeout(secs(5), passed).await.is_ok(), "stuck at {length} bytes with windows {near} and {far}");
        }
        assert_eq!(stream.send(vec![0; (4 << 20) + 1]).await.unwrap_err().code, Code::InvalidArgument);
        stream.finish();
        assert_eq!(stream.next().await.unwrap(), None, "what is too long was refused, and nothing else");
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_that_is_called_off_costs_nothing() {
    let network = Memory::new(1);
    let mut limits = Limits::default();
    limits.outgoing_bytes_max = 1;
    let a = node_by(&network, "a", |builder| builder.limits(limits));
    let mut listener = network.listen("b");
    let opening = tokio::spawn({
        let a = a.clone();
        async move { a.stream("b", "x", "").await }
    });
    let mut raw = Raw::greet(listener.accept().await.unwrap(), "b").await;
    let Some(Body::Open(open)) = raw.next().await else { panic!("no stream") };
    raw.say(&[Body::Credit(Credit { stream: StreamId { number: open.number, mine: false }, chunks: 100 })])
        .await;
    let mut stream = opening.await.unwrap().unwrap();
    let mut sent = 0;
    while tokio::time::timeout(ms(1), stream.send("x")).await.is_ok() {
        sent += 1;
    }
    assert!((10..90).contains(&sent), "there is credit, but no room to write: {sent}");
    for _ in 0..200 {
        assert!(tokio::time::timeout(ms(1), stream.send("x")).await.is_err());
    }
    let reading = tokio::spawn(async move {
        let mut places = Vec::new();
        while let Some(Body::Chunk(chunk)) = raw.within(secs(2)).await {
            places.push(chunk.place);
        }
        places
    });
    for _ in sent..100 {
        tokio::time::timeout(secs(1), stream.send("x")).await.expect("its credit is still there").unwrap();
    }
    assert!(tokio::time::timeout(ms(100), stream.send("x")).await.is_err(), "and no more than that");
    assert_eq!(reading.await.unwrap(), (0..100).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_either_side_reaches_the_other_and_stays() {
    let (_network, a, b) = two(1);
    b.route_streams("fails", |mut stream, _| async move {
        let _first = stream.next().await?;
        stream.send("last words").await?;
        Err(Failure::permanent("enough").code(Code::PermissionDenied))
    });
    let mut stream = a.stream("b", "fails", "").await.unwrap();
    stream.send("x").await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "last words");
    for _ in 0..3 {
        let failure = stream.next().await.unwrap_err();
        assert_eq!((failure.code, &*failure.message), (Code::PermissionDenied, "enough"), "and it does not look like an end later");
    }
    assert!(stream.send("y").await.is_err());

    let (told, tell) = tokio::sync::oneshot::channel();
    let told = std::sync::Arc::new(parking_lot::Mutex::new(Some(told)));
    b.route_streams("hears", move |mut stream, _| {
        let told = told.lock().take().unwrap();
        async move {
            told.send(all(&mut stream).await).unwrap();
            Ok(())
        }
    });
    let stream = a.stream("b", "hears", "").await.unwrap();
    stream.fail(&Failure::transient("no more disk").code(Code::ResourceExhausted));
    assert_eq!(tell.await.unwrap().unwrap_err().code, Code::ResourceExhausted);
    until("nothing is open", || a.counts().streams + b.counts().streams == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_returns_well_has_finished_and_one_that_panics_has_failed() {
    let (_network, a, b) = two(1);
    b.route_streams("well", |mut stream, _| async move { stream.send("x").await });
    b.route_streams("badly", |_stream, _| async move { panic!("on purpose") });
    b.route_streams("elsewhere", |mut stream, _| async move {
        tokio::spawn(async move {
            pass(secs(1)).await;
            stream.send("later").await.unwrap();
            stream.finish();
        });
        Ok(())
    });
    let mut stream = a.stream("b", "well", "").await.unwrap();
    assert_eq!(all(&mut stream).await.unwrap(), ["x"]);
    until("nobody reads what this side says", || b.counts().streams == 0).await;
    pass(ms(10)).await;
    assert!(stream.send("y").await.is_err(), "and it is told so");
    let failure = a.stream("b", "badly", "").await.unwrap().next().await.unwrap_err();
    assert_eq!(failure.code, Code::Internal);
    let mut stream = a.stream("b", "elsewhere", "").await.unwrap();
    assert_eq!(all(&mut stream).await.unwrap(), ["later"], "it lives as long as somebody has it");
    drop(stream);
    until("nothing is open", || a.counts().streams + b.counts().streams == 0).await;
}

#[tokio::test(start_paused = true)]
async fn who_drops_a_stream_or_is_cut_off_ends_it_for_both() {
    let (network, a, b) = two(1);
    let ends = Count::default();
    let ended = ends.clone();
    b.route_streams("waits", move |mut stream, _| {
        let ended = ended.clone();
        async move {
            let failure = stream.next().await.unwrap_err();
            ended.add();
            Err(failure)
        }
    });
    drop(a.stream("b", "waits", "").await.unwrap());
    until("the other side has heard", || ends.get() == 1).await;
    let mut stream = a.stream("b", "waits", "").await.unwrap();
    network.cut_all();
    let failure = stream.next().await.unwrap_err();
    assert_eq!(failure.class, Class::Transient, "{failure:?}");
    assert!(stream.send("x").await.is_err());
    until("the other side has heard", || ends.get() == 2).await;
    assert_eq!(a.counts().streams + b.counts().streams, 0);
    network.set("a", "b", Faults { refuse: true, ..Faults::default() });
    let at = Instant::now();
    assert_eq!(a.stream("b", "waits", "").await.unwrap_err().code, Code::Unavailable);
    assert!(at.elapsed() < secs(2), "streams are not tried again: {:?}", at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_route_one_that_takes_no_streams_and_too_many_are_refused() {
    let network = Memory::new(1);
    let a = node(&network, "a");
    let mut limits = Limits::default();
    limits.streams_max = 3;
    let b = node_by(&network, "b", |builder| builder.limits(limits));
    crate::network::echo(&b, "echo");
    b.route_streams("deaf", |stream, _| async move {
        let _held = stream;
        pending().await
    });
    assert_eq!(a.stream("b", "none", "").await.unwrap_err().code, Code::NotFound);
    assert_eq!(a.stream("b", "echo", "").await.unwrap_err().code, Code::InvalidArgument);
    assert_eq!(a.stream("b", "", "").await.unwrap_err().code, Code::InvalidArgument);
    let first =
        [a.stream("b", "deaf", "").await.unwrap(), a.stream("b", "deaf", "").await.unwrap(), a.stream("b", "deaf", "").await.unwrap()];
    let refused = async |why: &str| {
        let failure = a.stream("b", "deaf", "").await.unwrap_err();
        assert_eq!((failure.code, failure.retry_after), (Code::ResourceExhausted, Some(secs(1))), "{why}");
    };
    refused("there are three").await;
    drop(first);
    pass(ms(10)).await;
    refused("their handlers run still, and count").await;
    assert_eq!(a.counts().streams, 0);
}

#[tokio::test(start_paused = true)]
async fn who_opens_too_many_and_who_knows_too_many_is_told_when_to_try_again() {
    let network = Memory::new(1);
    let mut limits = Limits::default();
    (limits.streams_max, limits.peers_max) = (1, 1);
    let (a, b) = (node_by(&network, "a", |builder| builder.limits(limits)), node(&network, "b"));
    mirror(&b);
    let _first = a.stream("b", "mirror", "").await.unwrap();
    for (peer, why) in [("b", "one is open"), ("c", "b is known")] {
        let failure = a.stream(peer, "mirror", "").await.unwrap_err();
        assert_eq!((failure.code, failure.retry_after), (Code::ResourceExhausted, Some(secs(1))), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_piece_that_is_missing_doubled_or_out_of_order_ends_the_stream_and_never_shows_a_gap() {
    let seed = seed_or(3);
    for faults in [
        Faults { drop: 0.02, ..Faults::default() },
        Faults { duplicate: 0.02, ..Faults::default() },
        Faults { reorder: 0.05, ..Faults::default() },
    ] {
        let mut broken = 0;
        for seed in seed..seed + 10 {
            let (network, a, b) = two(seed);
            b.route_streams("count", |mut stream, _| async move {
                let mut expected = 0_u32;
                while let Some(piece) = stream.next().await? {
                    assert_eq!(piece, expected.to_string());
                    expected += 1;
                }
                stream.send(expected.to_string()).await
            });
            crate::network::echo(&b, "echo");
            a.call("b", "echo", "").await.unwrap();
            network.set("a", "b", faults.clone());
            let Ok(mut stream) = a.stream("b", "count", "").await else { continue };
            let sending = async {
                for number in 0..200 {
                    stream.send(number.to_string()).await?;
                    pass(ms(1)).await;
                }
                stream.finish();
                stream.next().await
            };
            match tokio::time::timeout(secs(60), sending).await {
                Ok(Ok(count)) => assert_eq!(count.unwrap(), "200", "seed {seed}"),
                Ok(Err(failure)) => {
                    assert_ne!(failure.code, Code::Internal, "seed {seed}: the handler saw something else: {failure:?}");
                    broken += 1;
                }
                Err(_) => broken += 1, // its last word was lost
            }
        }
        assert!(broken > 0, "{faults:?} did nothing");
    }
}

/// A stream that somebody opens by hand, and what the handler of it saw.
async fn by_hand(network: &Memory) -> (Raw, StreamId) {
    let mut raw = Raw::connect(network, "b", "raw").await;
    raw.say(&[Body::Open(Open { number: 1, route: "deaf".into(), credit: 0, ..Open::default() })]).await;
    let Some(Body::Credit(Credit { stream, chunks: 64 })) = raw.next().await else { panic!("not taken") };
    assert_eq!(stream, StreamId { number: 1, mine: false });
    (raw, StreamId { number: 1, mine: true })
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_sends_more_than_it_was_granted_loses_the_stream() {
    let network = Memory::new(1);
    let b = node(&network, "b");
    b.route_streams("deaf", |stream, _| async move {
        let _held = stream;
        pending().await
    });
    let (mut raw, stream) = by_hand(&network).await;
    let chunk = |place, length| Body::Chunk(Chunk { stream, place, payload: Bytes::from(vec![0; length]) });
    let pieces: Vec<_> = (0..64).map(|place| chunk(place, 10)).collect();
    raw.say(&pieces).await;
    assert!(raw.within(secs(1)).await.is_none(), "so much was granted");
    raw.say(&[chunk(64, 10)]).await;
    let Some(Body::Close(Close { error: Some(error), .. })) = raw.within(secs(1)).await else { panic!("it goes on") };
    assert_eq!(error.code, "RESOURCE_EXHAUSTED");
    assert_eq!(b.counts().streams, 0);
    let (mut raw, stream) = by_hand(&network).await;
    let long = |place| Body::Chunk(Chunk { stream, place, payload: Bytes::from(vec![0; 4 << 20]) });
    for place in 0..3 {
        raw.say(&[long(place)]).await;
    }
    assert!(matches!(raw.within(secs(1)).await, Some(Body::Close(Close { error: Some(_), .. }))), "long ones cost more");
    let (mut raw, stream) = by_hand(&network).await;
    raw.say(&[Body::Close(Close { stream, chunks: 5, error: None })]).await;
    let Some(Body::Close(Close { error: Some(error), .. })) = raw.within(secs(1)).await else { panic!("five are missing") };
    assert_eq!(error.class, "transient");
}

#[tokio::test(start_paused = true)]
async fn a_stream_belongs_to_the_trace_that_it_was_opened_in() {
    let (_network, a, b) = two(1);
    b.route_streams("trace", |mut stream, incoming| async move { stream.send(incoming.trace).await });
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut stream = a.stream("b", "trace", "").trace(trace).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), trace);
    let mut untraced = a.stream("b", "trace", "").await.unwrap();
    assert_eq!(untraced.next().await.unwrap().unwrap(), "");
    assert_eq!(a.stream("b", "trace", "").trace("x".repeat(257)).await.unwrap_err().code, Code::InvalidArgument);
}

#[tokio::test]
async fn what_a_stream_is_opened_with_is_not_told() {
    let (_network, a, _b) = two(1);
    let told = format!("{:?}", a.stream("b", "mirror", "s3cret").trace("trace"));
    assert!(told.contains("mirror") && !told.contains("s3cret"), "{told}");
}

/// Whoever connects, opens streams, cuts and comes again has no more handlers run than somebody who stays.
#[tokio::test(start_paused = true)]
async fn a_handler_whose_connection_is_cut_keeps_its_place_and_is_given_up_in_the_end() {
    let network = Memory::new(1);
    let mut limits = Limits::default();
    (limits.connections_max, limits.streams_max) = (4, 2);
    let b = node_by(&network, "b", |builder| builder.limits(limits));
    let handlers = Arc::new(());
    let handler = Arc::clone(&handlers);
    b.route_streams("deaf", move |_stream, _| {
        let handler = Arc::clone(&handler);
        async move {
            let _runs = handler;
            pending().await
        }
    });
    let running = || Arc::strong_count(&handlers) - 2;
    let come = async || {
        let mut raw = Raw::connect(&network, "b", "raw").await;
        for number in 1..=3 {
            let open = Open { number, route: "deaf".into(), credit: 1, ..Open::default() };
            raw.say(&[Body::Open(open)]).await;
        }
        pass(ms(100)).await;
    };
    for _ in 0..10 {
        come().await;
    }
    assert_eq!((running(), b.counts().connections), (8, 0), "two for each place");
    pass(secs(60)).await;
    assert_eq!(running(), 0, "nobody waits for them");
    come().await;
    assert_eq!(running(), 2, "there is room again");
}
