//! A peer that means harm: memory stays bounded, and others do not notice.

use crate::network::{Count, Raw, echo, ms, node, node_by, pass, request, secs, seed_or, until};
use bytes::{Bytes, BytesMut};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use std::future::pending;
use std::sync::Arc;
use steadfast_messaging::envelope::{self, Body, Cancel, Chunk, Close, Credit, Error, Number, Open, Reply, Sample, StreamId};
use steadfast_messaging::wire::memory::Memory;
use steadfast_messaging::{Failure, MemoryLetters, Node, Route};
use tokio::time::Instant;

/// A node with a route of each kind.
fn target(network: &Memory) -> (Node, Arc<MemoryLetters>) {
    let letters = Arc::new(MemoryLetters::default());
    let b = node_by(network, "b", |builder| builder.letters(letters.clone()));
    echo(&b, "echo");
    b.route("never", |_| pending::<Result<Bytes, Failure>>());
    b.route_samples("sample", |_| pending());
    b.route_streams("deaf", |stream, _| async move {
        let _held = stream;
        pending().await
    });
    b.route_streams("short", |mut stream, _| async move { stream.send("x").await });
    (b, letters)
}

/// Somebody else's call is answered at once, and what the node holds has a bound.
async fn is_well(network: &Memory, a: &Node, b: &Node) {
    let at = Instant::now();
    assert_eq!(a.call("b", "echo", "x").await.unwrap(), "x");
    assert!(at.elapsed() < ms(50), "others have to wait: {:?}", at.elapsed());
    let counts = b.counts();
    assert!(counts.outgoing_bytes <= 18 << 20 && counts.streams <= 256 && counts.requests <= 16_384, "{counts:?}");
    assert!(network.links() < 100);
}

#[tokio::test(start_paused = true)]
async fn a_million_opens_are_answered_within_bounds() {
    let network = Memory::new(1);
    let ((b, _letters), a) = (target(&network), node(&network, "a"));
    is_well(&network, &a, &b).await;
    for (route, rounds) in [("none", 40), ("deaf", 20), ("short", 20)] {
        let mut raw = Raw::connect(&network, "b", "raw").await;
        let mut packet = BytesMut::new();
        for number in 0..25_000 {
            let open = Open { number, route: route.into(), credit: 1, ..Open::default() };
            let wrong = Chunk { stream: StreamId { number, mine: true }, place: 7, payload: Bytes::new() };
            envelope::append(&mut packet, &Body::Open(open));
            if route != "none" {
                envelope::append(&mut packet, &Body::Chunk(wrong));
            }
        }
        let packet = packet.freeze();
        for _ in 0..rounds {
            if !raw.say_bytes(packet.clone()).await {
                break; // it was cut: it does not read
            }
            assert!(b.counts().outgoing_bytes <= 18 << 20, "{:?}", b.counts());
        }
        is_well(&network, &a, &b).await;
        drop(raw);
        until("nothing of it is left", || b.counts().connections == 1 && b.counts().streams == 0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn floods_of_pings_credit_replies_cancels_and_wrong_numbers_do_no_harm() {
    let network = Memory::new(1);
    let ((b, _letters), a) = (target(&network), node(&network, "a"));
    let stream = |number| StreamId { number, mine: number % 2 == 0 };
    let error = Error {
        code: "X".into(),
        class: "Y".into(),
        message: "m".repeat(10_000),
        causes: vec!["c".repeat(1000); 100],
        retry_after_us: Some(u64::MAX),
        attempts: u32::MAX,
        attempts_max: Some(0),
    };
    let mut floods: Vec<Vec<Body>> = vec![
        (0..20_000).map(|number| Body::Ping(Number { number })).collect(),
        (0..20_000)
            .map(|number| Body::Reply(Reply { number, attempt: 1, payload: "x".into(), error: None }))
            .collect(),
        (0..200)
            .map(|number| Body::Reply(Reply { number, attempt: 1, payload: Bytes::new(), error: Some(error.clone()) }))
            .collect(),
        (0..20_000).map(|number| Body::Cancel(Cancel { number, comes_again: number % 2 == 0 })).collect(),
        (0..20_000)
            .map(|number| Body::Chunk(Chunk { stream: stream(number), place: number, payload: "x".into() }))
            .collect(),
        (0..20_000)
            .map(|number| Body::Close(Close { stream: stream(number), chunks: number, error: None }))
            .collect(),
        (0..2000)
            .map(|_| Body::Sample(Sample { route: "sample".into(), payload: Bytes::from(vec![0; 1000]) }))
            .collect(),
        (0..20_000).map(|number| Body::Call(request(number, "", "echo", ""))).collect(),
        (0..1000).map(|number| Body::Call(request(number, "x", &"r".repeat(5000), ""))).collect(),
    ];
    let mut credits = vec![Body::Open(Open { number: 1, route: "deaf".into(), credit: u32::MAX, ..Open::default() })];
    credits.extend((0..20_000).map(|_| Body::Credit(Credit { stream: StreamId { number: 1, mine: true }, chunks: u32::MAX })));
    floods.push(credits);
    for flood in floods {
        let mut raw = Raw::connect(&network, "b", "raw").await;
        for _ in 0..3 {
            if !raw.say(&flood).await {
                break;
            }
            is_well(&network, &a, &b).await;
        }
    }
    until("nothing of it is left", || b.counts().connections == 1 && b.counts().streams == 0 && b.counts().requests == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_small_part_of_a_huge_packet_does_not_keep_the_packet() {
    let network = Memory::new(1);
    let ((b, _letters), a) = (target(&network), node(&network, "a"));
    let mut raw = Raw::connect(&network, "b", "raw").await;
    let alive = Arc::new(());
    for number in 0..200 {
        let mut packet = BytesMut::new();
        envelope::append(&mut packet, &Body::Call(request(number, &number.to_string(), "never", "small")));
        let open = Open { number, route: "deaf".into(), credit: 1, ..Open::default() };
        let chunk = Chunk { stream: StreamId { number, mine: true }, place: 0, payload: "small".into() };
        let sample = Sample { route: "sample".into(), payload: "small".into() };
        [Body::Open(open), Body::Chunk(chunk), Body::Sample(sample)]
            .iter()
            .for_each(|body| envelope::append(&mut packet, body));
        packet.extend_from_slice(b"\x0a\x01\xff"); // a frame that cannot be read, too
        envelope::append(&mut packet, &Body::Reply(Reply { number: 1, attempt: 1, payload: Bytes::from(vec![7; 1 << 20]), error: None }));
        if number % 15 == 14 {
            raw = Raw::connect(&network, "b", "raw").await; // so many frames that cannot be read are too many for one
        }
        raw.say_bytes(Bytes::from_owner(Owned(packet, alive.clone()))).await;
    }
    until("all run", || b.counts().requests == 200).await;
    pass(ms(100)).await;
    assert_eq!(Arc::strong_count(&alive), 1, "of 200 MiB that came, a few KiB are held");
    is_well(&network, &a, &b).await;
}

/// Bytes of which one sees whether somebody still has them.
struct Owned(BytesMut, #[expect(dead_code, reason = "it is counted")] Arc<()>);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_of_any_kind_is_survived() {
    let seed = seed_or(11);
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let network = Memory::new(seed);
    let ((b, letters), a) = (target(&network), node(&network, "a"));
    let mut good = BytesMut::new();
    for body in [
        Body::Call(request(1, "x", "echo", "payload")),
        Body::Open(Open { number: 1, route: "short".into(), credit: 3, ..Open::default() }),
        Body::Chunk(Chunk { stream: StreamId { number: 1, mine: true }, place: 0, payload: "x".into() }),
        Body::Tell(request(2, "y", "echo", "payload")),
    ] {
        envelope::append(&mut good, &body);
    }
    for round in 0..600 {
        let mut bytes = good.to_vec();
        match round % 3 {
            0 => bytes = (0..chance.next_u32() % 200).map(|_| chance.next_u32() as u8).collect(),
            1 => {
                let place = chance.next_u32() as usize % bytes.len();
                bytes[place] ^= 1 << (chance.next_u32() % 8);
            }
            _ => bytes.truncate(chance.next_u32() as usize % bytes.len()),
        }
        let mut raw = Raw::connect(&network, "b", "raw").await;
        raw.say_bytes(bytes.into()).await;
        if round % 20 == 0 {
            is_well(&network, &a, &b).await;
        }
    }
    until("nothing of it is left", || b.counts().connections == 1 && b.counts().streams == 0 && b.counts().requests == 0).await;
    let kept = letters.list();
    assert!(!kept.is_empty() && kept.len() <= 5000, "SEED={seed}: {} letters", kept.len());
}

#[tokio::test(start_paused = true)]
async fn who_fills_the_line_of_one_route_does_not_hold_up_another() {
    let network = Memory::new(1);
    let ((b, _letters), a) = (target(&network), node(&network, "a"));
    b.route("big", |_| async { Ok(vec![0; 1 << 20]) });
    let mut raw = Raw::connect(&network, "b", "raw").await;
    let calls: Vec<_> = (0..1000).map(|number| Body::Call(request(number, &number.to_string(), "big", ""))).collect();
    raw.say(&calls).await;
    pass(secs(1)).await;
    is_well(&network, &a, &b).await;
    assert_eq!(a.call("b", "big", "").await.unwrap().len(), 1 << 20, "nor the same one, by not reading the answers");
    pass(secs(20)).await;
    assert_eq!((b.counts().connections, b.counts().requests), (1, 0), "it was found dead");
}

#[tokio::test(start_paused = true)]
async fn who_takes_all_the_places_that_it_can_get_leaves_some_to_others() {
    let network = Memory::new(1);
    let (b, a) = (node(&network, "b"), node(&network, "a"));
    echo(&b, "echo");
    b.route_by("never", Route::new(|_| pending::<Result<Bytes, Failure>>()).in_line(usize::MAX));
    let mut raws = Vec::new();
    for name in ["one", "two", "three"] {
        let mut raw = Raw::connect(&network, "b", name).await;
        for round in 0..20 {
            let calls: Vec<_> = (0..1000).map(|n| Body::Call(request(n, &format!("{round}-{n}"), "never", ""))).collect();
            raw.say(&calls).await;
            while raw.within(ms(1)).await.is_some() {}
        }
        raws.push(raw);
    }
    assert!((16_000..16_384).contains(&b.counts().requests), "{:?}", b.counts());
    is_well(&network, &a, &b).await;
}

/// How often others have their turn while that packet is read, and what follows it is answered.
async fn turns_of_others(raw: &mut Raw, frames: &[u8]) -> usize {
    let turns = Count::default();
    let others = tokio::spawn({
        let turns = turns.clone();
        async move {
            loop {
                turns.add();
                tokio::task::yield_now().await;
            }
        }
    });
    let mut packet = BytesMut::from(frames);
    envelope::append(&mut packet, &Body::Ping(Number { number: 7 }));
    raw.say_bytes(packet.freeze()).await;
    while !matches!(raw.next().await.unwrap(), Body::Pong(Number { number: 7 })) {}
    others.abort();
    turns.get()
}

/// None of them begins a handler; the calls are refused, because their route and their id are empty.
#[tokio::test(start_paused = true)]
async fn while_a_packet_of_very_many_frames_is_read_others_have_their_turn() {
    let network = Memory::new(1);
    let ((b, _letters), a) = (target(&network), node(&network, "a"));
    let mut raw = Raw::connect(&network, "b", "raw").await;
    let usual = turns_of_others(&mut raw, &[]).await;
    for frame in [&b"\x0a\x00"[..], b"\x0a\x02\x12\x00"] {
        let few = turns_of_others(&mut raw, &frame.repeat(500)).await;
        assert!(few <= usual + 2, "as many as come at once are read at once: {few} and {usual}");
        let many = turns_of_others(&mut raw, &frame.repeat(100_000)).await;
        assert!(many >= usual + 90, "{many} and {usual}");
    }
    is_well(&network, &a, &b).await;
}
