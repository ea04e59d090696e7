//! Whatever comes from outside is read or refused, and never more than that. The fuzzer has no end; this is the part of it that always runs.

use bytes::{Bytes, BytesMut};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt};
use steadfast_messaging::envelope::{
    self, Body, Cancel, Chunk, Close, Credit, Error, Hello, Number, Open, Reply, Request, Sample, StreamId,
};
use steadfast_messaging::fuzzing;

/// How many inputs are tried.
const INPUTS: usize = 200_000;

/// One frame of each kind.
pub(crate) fn bodies() -> Vec<Body> {
    let stream = StreamId { number: 300, mine: true };
    let error = Error {
        code: "UNAVAILABLE".into(),
        class: "transient".into(),
        message: "gone".into(),
        causes: vec!["a".into(), "é".into()],
        retry_after_us: Some(1500),
        attempts: 2,
        attempts_max: Some(3),
    };
    let request = Request {
        number: 1 << 40,
        attempt: 2,
        route: "transfer".into(),
        id: "01K9ZZZZZZ0000000000000000".into(),
        left_us: 30_000_000,
        trace: "00-ab-cd-01".into(),
        payload: Bytes::from_static(b"\xffamount 3"),
        behalf: "shop".into(),
        queued_us: 7_000_000,
    };
    let payload = || Bytes::from_static(&[0xff, 0, 1]);
    vec![
        Body::Hello(Hello { version: 1, node: "payments-1".into(), frame_bytes_max: 4 << 20, refused: None }),
        Body::Hello(Hello { refused: Some(error.clone()), ..Hello::default() }),
        Body::Call(request.clone()),
        Body::Tell(request),
        Body::Reply(Reply { number: 7, attempt: 1, payload: payload(), error: None }),
        Body::Reply(Reply { number: 7, attempt: 1, payload: Bytes::new(), error: Some(error.clone()) }),
        Body::Cancel(Cancel { number: 9, comes_again: true }),
        Body::Open(Open { number: 3, route: "feed".into(), trace: "t".into(), credit: 64, payload: payload() }),
        Body::Chunk(Chunk { stream, place: 128, payload: payload() }),
        Body::Credit(Credit { stream, chunks: 32 }),
        Body::Close(Close { stream, chunks: 129, error: Some(error) }),
        Body::Sample(Sample { route: "position".into(), payload: payload() }),
        Body::Ping(Number { number: u64::MAX }),
        Body::Pong(Number { number: 0 }),
    ]
}

fn packet(bodies: &[Body]) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    bodies.iter().for_each(|body| envelope::append(&mut bytes, body));
    bytes.to_vec()
}

/// Valid packets: each frame by itself, and some together, the latter with the time at which they were sent, as nodes send them.
fn corpus() -> Vec<Vec<u8>> {
    let bodies = bodies();
    let stamped = |bodies: &[Body]| [&[0x11, 1, 2, 3, 4, 5, 6, 0, 0], &*packet(bodies)].concat();
    bodies.chunks(1).map(packet).chain(bodies.windows(2).map(stamped)).collect()
}

/// Spoils a packet a little, in the ways in which decoders are caught.
fn spoil(bytes: &mut Vec<u8>, other: &[u8], chance: &mut ChaCha8Rng) {
    let at = chance.random_range(0..=bytes.len());
    let end = chance.random_range(at..=bytes.len());
    match chance.random_range(0..9) {
        0..3 if at < bytes.len() => bytes[at] ^= 1 << chance.random_range(0..8),
        3 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][chance.random_range(0..5)],
        4 => bytes.truncate(at),
        5 => drop(bytes.drain(at..end)),
        6 => drop(bytes.splice(at..at, other[..chance.random_range(0..=other.len())].iter().copied())),
        7 => drop(bytes.splice(at..end, [0xff, 0xff, 0xff, 0xff, [0x07, 0x0f, 0x7f][chance.random_range(0..3)]])), // a length of gigabytes
        _ => bytes.insert(at, chance.next_u32() as u8),
    }
}

#[test]
fn whatever_comes_is_read_or_refused() {
    let (corpus, mut chance) = (corpus(), crate::chance());
    let (mut packets, mut frames) = (0, 0);
    for _ in 0..INPUTS {
        let mut bytes = corpus[chance.random_range(0..corpus.len())].clone();
        for _ in 0..chance.random_range(1..4) {
            let other = &corpus[chance.random_range(0..corpus.len())];
            spoil(&mut bytes, other, &mut chance);
        }
        if let Ok(read) = fuzzing::read(&bytes) {
            packets += 1;
            frames += read.len();
        }
    }
    println!("{packets} packets and {frames} frames of {INPUTS} inputs could be read");
    assert!((INPUTS / 10..INPUTS * 9 / 10).contains(&packets) && frames > INPUTS / 20, "the inputs are neither all good nor all bad");
}

#[test]
fn what_nobody_has_spoiled_is_read_as_it_was_written() {
    let bodies = bodies();
    assert_eq!(fuzzing::read(&packet(&bodies)).unwrap(), bodies);
}

#[test]
fn a_length_that_is_only_claimed_is_refused() {
    for claim in [&[0xff, 0xff, 0xff, 0xff, 0x07][..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], &[0x05]] {
        assert!(fuzzing::read(&[&[0x0a], claim, b"abc"].concat()).is_err(), "a frame");
        let frame = [&[0x12, claim.len() as u8 + 4, 0x3a], claim, b"abc"].concat();
        assert_eq!(fuzzing::read(&[&[0x0a, frame.len() as u8], &*frame].concat()).unwrap(), [], "the payload of a call");
    }
}

#[test]
fn a_failure_of_very_many_causes_is_read_with_the_first_of_them() {
    let causes: Vec<_> = (0..100_000).map(|number| if number < 16 { number.to_string() } else { String::new() }).collect();
    let reply =
        |causes: &[String]| Body::Reply(Reply { error: Some(Error { causes: causes.to_vec(), ..Error::default() }), ..Reply::default() });
    assert_eq!(fuzzing::read(&packet(&[reply(&causes)])).unwrap(), [reply(&causes[..16])]);
}

/// The shortest texts there are take more memory than bytes: the allocator's least.
#[test]
fn a_frame_of_the_shortest_texts_is_read() {
    let hello = |text: &str| Body::Hello(Hello { node: text.into(), ..Hello::default() });
    let request = Request { route: "r".into(), id: "i".into(), trace: "t".into(), behalf: "b".into(), ..Request::default() };
    for body in [hello("n"), Body::Call(request)] {
        assert_eq!(fuzzing::read(&packet(std::slice::from_ref(&body))).unwrap(), [body]);
    }
}
