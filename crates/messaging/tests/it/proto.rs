//! `messaging.proto` describes what we write, exactly: every field is written once by our code and found by the description's number, name and type.

use crate::decoding::bodies;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use prost::encoding::decode_varint;
use std::collections::BTreeMap;
use steadfast_messaging::envelope::{
    self, Cancel, Chunk, Close, Credit, Error, Frame, Hello, Number, Open, Packet, Reply, Request, Sample, StreamId,
};

#[derive(Clone, Debug, PartialEq)]
struct Field {
    label: String,
    kind: String,
    name: String,
}

/// The messages of the description: their fields by number.
type Messages = BTreeMap<String, BTreeMap<u64, Field>>;

fn description() -> Messages {
    let text = include_str!("../../proto/messaging.proto");
    let mut messages = Messages::new();
    let mut current = None;
    for line in text.lines().map(|line| line.split("//").next().unwrap_or_default().trim()) {
        let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
        match words[..] {
            ["message", name, "{"] => {
                current = Some(name.to_owned());
                assert!(messages.insert(name.into(), BTreeMap::new()).is_none(), "{name} is there twice");
            }
            [ref before @ .., kind, name, "=", number] if current.is_some() => {
                let field = Field { label: before.concat(), kind: kind.into(), name: name.into() };
                let fields = messages.get_mut(current.as_ref().unwrap()).unwrap();
                assert_eq!(fields.insert(number.parse().unwrap(), field), None, "{number} is there twice");
            }
            _ => {}
        }
    }
    messages
}

/// What was found on the wire: name and value, in the order in which they came.
type Found = Vec<(String, String)>;

/// Reads bytes by the description alone. All numbers are the largest of their type, and bytes are no text, so that types cannot be mistaken for each other.
fn read(messages: &Messages, message: &str, mut bytes: Bytes) -> Found {
    let mut found = Found::new();
    while !bytes.is_empty() {
        let key = decode_varint(&mut bytes).unwrap();
        let field = messages[message].get(&(key >> 3)).unwrap_or_else(|| panic!("{message} has no field {}", key >> 3));
        let value = match (key & 7, &*field.kind) {
            (0, "uint32") => {
                decode_varint(&mut bytes).map(|number| if number == u64::from(u32::MAX) { "max32".into() } else { format!("{number}?") })
            }
            (0, "uint64") => decode_varint(&mut bytes).map(|number| if number == u64::MAX { "max64".into() } else { format!("{number}?") }),
            (1, "fixed64") => Ok(if bytes.get_u64_le() == u64::MAX { "max64".into() } else { "?".into() }),
            (0, "bool") => decode_varint(&mut bytes).map(|number| (number == 1).to_string()),
            (2, kind) => {
                let length = decode_varint(&mut bytes).unwrap() as usize;
                let part = bytes.split_to(length);
                Ok(match kind {
                    "string" => String::from_utf8(part.into()).unwrap(),
                    "bytes" => format!("{:?}", String::from_utf8(part.into()).map_err(|error| error.into_bytes()).unwrap_err()),
                    kind => {
                        assert!(messages.contains_key(kind), "{message}.{} is of no known type {kind}", field.name);
                        shown(&read(messages, kind, part))
                    }
                })
            }
            (wire, kind) => panic!("{message}.{} is {kind} and is written as {wire}", field.name),
        };
        found.push((field.name.clone(), value.unwrap()));
    }
    found
}

fn shown(found: &Found) -> String {
    let fields: Vec<String> = found.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{{{}}}", fields.join(" "))
}

const NO_TEXT: Bytes = Bytes::from_static(&[0xff]);

fn stream() -> StreamId {
    StreamId { number: u64::MAX, mine: true }
}

fn error() -> Error {
    Error {
        code: "CODE".into(),
        class: "CLASS".into(),
        message: "MESSAGE".into(),
        causes: vec!["FIRST".into(), "SECOND".into()],
        retry_after_us: Some(u64::MAX),
        attempts: u32::MAX,
        attempts_max: Some(u32::MAX),
    }
}

const ERROR: &str =
    "{code=CODE class=CLASS message=MESSAGE causes=FIRST causes=SECOND retry_after_us=max64 attempts=max32 attempts_max=max32}";
const STREAM: &str = "{number=max64 mine=true}";

/// Each message with all that it has, and what is to be found in it.
fn probes() -> Vec<(&'static str, Vec<u8>, String)> {
    let request = Request {
        number: u64::MAX,
        attempt: u32::MAX,
        route: "ROUTE".into(),
        id: "ID".into(),
        left_us: u64::MAX,
        trace: "TRACE".into(),
        payload: NO_TEXT,
        behalf: "BEHALF".into(),
        queued_us: u64::MAX,
    };
    let open = Open { number: u64::MAX, route: "ROUTE".into(), trace: "TRACE".into(), credit: u32::MAX, payload: NO_TEXT };
    let number = Number { number: u64::MAX };
    vec![
        (
            "Packet",
            Packet { frames: vec![Bytes::new(), Bytes::new()], sent_us: u64::MAX }.encode_to_vec(),
            "{frames={} frames={} sent_us=max64}".into(),
        ),
        (
            "Hello",
            Hello { version: u32::MAX, node: "NODE".into(), frame_bytes_max: u64::MAX, refused: Some(error()) }.encode_to_vec(),
            format!("{{version=max32 node=NODE frame_bytes_max=max64 refused={ERROR}}}"),
        ),
        (
            "Request",
            request.encode_to_vec(),
            "{number=max64 attempt=max32 route=ROUTE id=ID left_us=max64 trace=TRACE payload=[255] behalf=BEHALF queued_us=max64}".into(),
        ),
        (
            "Reply",
            Reply { number: u64::MAX, attempt: u32::MAX, payload: NO_TEXT, error: Some(error()) }.encode_to_vec(),
            format!("{{number=max64 attempt=max32 payload=[255] error={ERROR}}}"),
        ),
        ("Cancel", Cancel { number: u64::MAX, comes_again: true }.encode_to_vec(), "{number=max64 comes_again=true}".into()),
        ("Number", number.encode_to_vec(), "{number=max64}".into()),
        ("Open", open.encode_to_vec(), "{number=max64 route=ROUTE trace=TRACE credit=max32 payload=[255]}".into()),
        ("StreamId", stream().encode_to_vec(), STREAM.into()),
        (
            "Chunk",
            Chunk { stream: stream(), place: u64::MAX, payload: NO_TEXT }.encode_to_vec(),
            format!("{{stream={STREAM} place=max64 payload=[255]}}"),
        ),
        ("Credit", Credit { stream: stream(), chunks: u32::MAX }.encode_to_vec(), format!("{{stream={STREAM} chunks=max32}}")),
        (
            "Close",
            Close { stream: stream(), chunks: u64::MAX, error: Some(error()) }.encode_to_vec(),
            format!("{{stream={STREAM} chunks=max64 error={ERROR}}}"),
        ),
        ("Sample", Sample { route: "ROUTE".into(), payload: NO_TEXT }.encode_to_vec(), "{route=ROUTE payload=[255]}".into()),
        ("Error", error().encode_to_vec(), ERROR.into()),
    ]
}

#[test]
fn every_field_is_written_with_the_number_name_and_type_that_the_description_has() {
    let messages = description();
    for (message, bytes, expected) in probes() {
        let found = read(&messages, message, bytes.into());
        assert_eq!(shown(&found), expected, "{message}");
        for field in messages[message].values() {
            let times = found.iter().filter(|(name, _)| *name == field.name).count();
            assert_eq!(times, if field.label == "repeated" { 2 } else { 1 }, "{message}.{}", field.name);
        }
    }
    let described: Vec<&str> = messages.keys().map(String::as_str).collect();
    let mut probed: Vec<&str> = probes().into_iter().map(|(message, ..)| message).chain(["Frame"]).collect();
    probed.sort_unstable();
    assert_eq!(described, probed);
}

#[test]
fn a_frame_has_the_bodies_that_the_description_has() {
    let messages = description();
    let mut found: Vec<(String, String)> = Vec::new();
    for body in bodies() {
        let mut bytes = BytesMut::new();
        envelope::append(&mut bytes, &body);
        let frame = envelope::packet(bytes.freeze()).unwrap().next().unwrap();
        assert_eq!(Frame { body: Some(body.clone()) }.encode_to_vec(), frame);
        let [(name, _)] = <[_; 1]>::try_from(read(&messages, "Frame", frame)).unwrap();
        let variant = format!("{body:?}").split('(').next().unwrap().to_lowercase();
        assert_eq!(name, variant);
        found.push((name, variant));
    }
    found.dedup();
    let described: Vec<&str> = messages["Frame"].values().map(|field| &*field.name).collect();
    assert_eq!(found.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), described);
}

#[test]
fn only_what_may_be_missing_is_written_when_it_is_zero() {
    let messages = description();
    let zero = Error { retry_after_us: Some(0), attempts_max: Some(0), ..Error::default() };
    let written: Vec<String> = read(&messages, "Error", zero.encode_to_vec().into()).into_iter().map(|(name, _)| name).collect();
    let optional: Vec<&str> = messages["Error"]
        .values()
        .filter(|field| field.label == "optional")
        .map(|field| &*field.name)
        .collect();
    assert_eq!(written, optional);
    let others = messages.iter().filter(|(name, _)| *name != "Error").flat_map(|(_, fields)| fields.values());
    assert!(others.into_iter().all(|field| field.label != "optional"));
}

#[test]
fn a_stream_that_is_left_out_is_the_one_without_a_number() {
    let mut bytes = BytesMut::new();
    bytes.put_slice(&[0x10, 0x05]);
    assert_eq!(Credit::decode(bytes.freeze()).unwrap(), Credit { stream: StreamId::default(), chunks: 5 });
}
