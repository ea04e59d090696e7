//! What travels between two nodes: packets of frames, as `messaging.proto` describes them for other languages.
//!
//! A packet is what a wire carries in one piece. The frames in it are told apart before they are read, so that one that nobody can read is set aside alone.
//! Unknown fields and frames of a newer version are ignored.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::encoding::{self, DecodeContext, WireType, check_wire_type, decode_key, skip_field};
use prost::{DecodeError, Message, encode_length_delimiter, length_delimiter_len};
use std::cell::Cell;
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure};

/// The version of this protocol.
pub const VERSION: u32 = 1;

/// The number of the field of a packet in which its frames are.
const FRAMES_TAG: u32 = 1;

/// What stands before every frame in a packet: the number and kind of the field, as Protobuf writes them.
const FRAMES: u8 = (FRAMES_TAG as u8) << 3 | WireType::LengthDelimited as u8;

/// The number of the field of a packet in which the time is.
const SENT_TAG: u32 = 2;

/// What a packet begins with that is going to be [stamped](stamp).
pub(crate) const UNSTAMPED: [u8; 9] = [(SENT_TAG as u8) << 3 | WireType::SixtyFourBit as u8, 0, 0, 0, 0, 0, 0, 0, 0];

/// What a wire carries in one piece.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Packet {
    /// The frames, each of them a [`Frame`] that is yet to be read.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub frames: Vec<Bytes>,
    /// What the sender's clock says as the packet leaves its queue for the wire, in microseconds; 0 without such a clock.
    #[prost(fixed64, tag = "2")]
    pub sent_us: u64,
}

/// One thing that a node says to another.
#[derive(Clone, PartialEq, Message)]
pub struct Frame {
    /// What it says; nothing if it is from a newer version.
    #[prost(oneof = "Body", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12")]
    pub body: Option<Body>,
}

/// What a frame says.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Body {
    /// Who speaks; the first frame in either direction.
    #[prost(message, tag = "1")]
    Hello(Hello),
    /// A request that wants an answer.
    #[prost(message, tag = "2")]
    Call(Request),
    /// A request that wants to be taken, and no answer.
    #[prost(message, tag = "3")]
    Tell(Request),
    /// What became of a call, or that a tell was taken.
    #[prost(message, tag = "4")]
    Reply(Reply),
    /// Nobody waits for that call any more.
    #[prost(message, tag = "5")]
    Cancel(Cancel),
    /// A stream begins.
    #[prost(message, tag = "6")]
    Open(Open),
    /// A piece of a stream.
    #[prost(message, tag = "7")]
    Chunk(Chunk),
    /// So many more pieces may come.
    #[prost(message, tag = "8")]
    Credit(Credit),
    /// One side of a stream says no more.
    #[prost(message, tag = "9")]
    Close(Close),
    /// Something of which only the newest matters.
    #[prost(message, tag = "10")]
    Sample(Sample),
    /// Are you there?
    #[prost(message, tag = "11")]
    Ping(Number),
    /// Yes.
    #[prost(message, tag = "12")]
    Pong(Number),
}

/// Who speaks.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Hello {
    /// The version of the protocol.
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// The name of the node: the same after it has connected again.
    #[prost(string, tag = "2")]
    pub node: String,
    /// The longest frame that it takes, in bytes.
    #[prost(uint64, tag = "3")]
    pub frame_bytes_max: u64,
    /// Why it does not take the connection, if it does not.
    #[prost(message, optional, tag = "4")]
    pub refused: Option<Error>,
}

/// A request, of a call or a tell.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Request {
    /// Which, among all that the sender ever asked this receiver. Equal for all attempts.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// Which attempt.
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
    /// Who is to deal with it.
    #[prost(string, tag = "3")]
    pub route: String,
    /// What tells it apart from all other requests of the sender. Equal for all attempts.
    #[prost(string, tag = "4")]
    pub id: String,
    /// How much of its time was left when it was queued, in microseconds.
    #[prost(uint64, tag = "5")]
    pub left_us: u64,
    /// The trace that it belongs to, as a W3C `traceparent`.
    #[prost(string, tag = "6")]
    pub trace: String,
    /// The bytes.
    #[prost(bytes = "bytes", tag = "7")]
    pub payload: Bytes,
    /// On whose behalf it is sent, if that is not the node that sends it: ids of requests are told apart by this name then.
    #[prost(string, tag = "8")]
    pub behalf: String,
    /// What the sender's clock said when it was queued; 0 without such a clock.
    #[prost(uint64, tag = "9")]
    pub queued_us: u64,
}

impl Request {
    /// Its time went on while it was queued, until the packet was sent that it came in.
    pub(crate) fn was_sent(&mut self, sent_us: u64) {
        if self.queued_us != 0 {
            self.left_us = self.left_us.saturating_sub(sent_us.saturating_sub(self.queued_us));
        }
    }
}

/// What became of a request.
#[derive(Clone, PartialEq, Message)]
pub struct Reply {
    /// Which request.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// Which attempt of it is answered.
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
    /// The answer, if it succeeded.
    #[prost(bytes = "bytes", tag = "3")]
    pub payload: Bytes,
    /// Why not, if it did not.
    #[prost(message, optional, tag = "4")]
    pub error: Option<Error>,
}

/// Nobody waits for a call any more.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Cancel {
    /// Which call.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// Whoever waited is going to ask for it again: what runs once goes on.
    #[prost(bool, tag = "2")]
    pub comes_again: bool,
}

/// A number, and nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Number {
    /// Of what.
    #[prost(uint64, tag = "1")]
    pub number: u64,
}

/// A stream begins.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Open {
    /// Which, among the streams that this side opened on this connection.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// Who is to deal with it.
    #[prost(string, tag = "2")]
    pub route: String,
    /// The trace that it belongs to.
    #[prost(string, tag = "3")]
    pub trace: String,
    /// How many pieces may come back before more are asked for.
    #[prost(uint32, tag = "4")]
    pub credit: u32,
    /// What the other side is to know from the start.
    #[prost(bytes = "bytes", tag = "5")]
    pub payload: Bytes,
}

/// Which stream: numbers are given by the side that opened it.
#[derive(Clone, Copy, PartialEq, Eq, Message, Hash)]
pub struct StreamId {
    /// Its number.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// It was opened by the side that speaks.
    #[prost(bool, tag = "2")]
    pub mine: bool,
}

/// A piece of a stream.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Chunk {
    /// Which stream.
    #[prost(message, required, tag = "1")]
    pub stream: StreamId,
    /// Its place, from 0.
    #[prost(uint64, tag = "2")]
    pub place: u64,
    /// The bytes.
    #[prost(bytes = "bytes", tag = "3")]
    pub payload: Bytes,
}

/// So many more pieces may come.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Credit {
    /// On which stream.
    #[prost(message, required, tag = "1")]
    pub stream: StreamId,
    /// How many.
    #[prost(uint32, tag = "2")]
    pub chunks: u32,
}

/// One side of a stream says no more.
#[derive(Clone, PartialEq, Message)]
pub struct Close {
    /// Of which stream.
    #[prost(message, required, tag = "1")]
    pub stream: StreamId,
    /// How many pieces there were.
    #[prost(uint64, tag = "2")]
    pub chunks: u64,
    /// Why, if it did not come to its end: then the other side is over as well.
    #[prost(message, optional, tag = "3")]
    pub error: Option<Error>,
}

/// Something of which only the newest matters.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Sample {
    /// Who is to deal with it.
    #[prost(string, tag = "1")]
    pub route: String,
    /// The bytes.
    #[prost(bytes = "bytes", tag = "2")]
    pub payload: Bytes,
}

/// The most causes of a failure that are read, as many as a [`Failure`] keeps: an empty one has two bytes on its way, and twenty-four here.
pub(crate) const CAUSES_MAX: usize = 16;

/// A failure on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Error {
    /// What went wrong, for programs: a name such as `UNAVAILABLE`.
    pub code: String,
    /// Whether it may pass: `transient`, `permanent`, `poison`.
    pub class: String,
    /// What went wrong, for people.
    pub message: String,
    /// What lies behind it, nearest first.
    pub causes: Vec<String>,
    /// How long to wait before the next attempt, in microseconds.
    pub retry_after_us: Option<u64>,
    /// How many attempts were made where it comes from.
    pub attempts: u32,
    /// How many were allowed, if they were used up.
    pub attempts_max: Option<u32>,
}

/// As it would be derived, but for the bound of causes.
impl Message for Error {
    fn encode_raw(&self, buffer: &mut impl BufMut) {
        for (tag, text) in self.texts() {
            encoding::string::encode(tag, text, buffer);
        }
        encoding::string::encode_repeated(4, &self.causes, buffer);
        if let Some(micros) = &self.retry_after_us {
            encoding::uint64::encode(5, micros, buffer);
        }
        for (tag, number) in self.numbers() {
            encoding::uint32::encode(tag, &number, buffer);
        }
    }

    fn encoded_len(&self) -> usize {
        let texts: usize = self.texts().map(|(tag, text)| encoding::string::encoded_len(tag, text)).sum();
        let numbers: usize = self.numbers().map(|(tag, number)| encoding::uint32::encoded_len(tag, &number)).sum();
        let retry_after = self.retry_after_us.map_or(0, |micros| encoding::uint64::encoded_len(5, &micros));
        texts + encoding::string::encoded_len_repeated(4, &self.causes) + retry_after + numbers
    }

    fn merge_field(&mut self, tag: u32, wire_type: WireType, buffer: &mut impl Buf, context: DecodeContext) -> Result<(), DecodeError> {
        match tag {
            1 => encoding::string::merge(wire_type, &mut self.code, buffer, context),
            2 => encoding::string::merge(wire_type, &mut self.class, buffer, context),
            3 => encoding::string::merge(wire_type, &mut self.message, buffer, context),
            4 if self.causes.len() < CAUSES_MAX => encoding::string::merge_repeated(wire_type, &mut self.causes, buffer, context),
            5 => encoding::uint64::merge(wire_type, self.retry_after_us.get_or_insert_default(), buffer, context),
            6 => encoding::uint32::merge(wire_type, &mut self.attempts, buffer, context),
            7 => encoding::uint32::merge(wire_type, self.attempts_max.get_or_insert_default(), buffer, context),
            _ => skip_field(wire_type, tag, buffer, context),
        }
    }

    fn clear(&mut self) {
        *self = Error::default();
    }
}

impl Error {
    /// The texts that are written, by their numbers.
    fn texts(&self) -> impl Iterator<Item = (u32, &String)> {
        let all = [(1, &self.code), (2, &self.class), (3, &self.message)];
        all.into_iter().filter(|(_, text)| !text.is_empty())
    }

    /// The numbers that are written behind the others, by theirs.
    fn numbers(&self) -> impl Iterator<Item = (u32, u32)> {
        let attempts = Some(self.attempts).filter(|attempts| *attempts != 0);
        attempts.map(|attempts| (6, attempts)).into_iter().chain(self.attempts_max.map(|max| (7, max)))
    }
}

impl From<&Failure> for Error {
    fn from(failure: &Failure) -> Self {
        Error {
            code: failure.code.as_str().into(),
            class: failure.class.as_str().into(),
            message: failure.message.clone(),
            causes: failure.causes.clone(),
            retry_after_us: failure.retry_after.map(micros),
            attempts: failure.attempts,
            attempts_max: failure.max_attempts,
        }
    }
}

/// Class alone decides what follows; a code of a newer version is `INTERNAL`, a class that nobody knows is permanent: it is not tried again.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let class = match &*error.class {
            "transient" => Class::Transient,
            "poison" => Class::Poison,
            _ => Class::Permanent,
        };
        let mut failure = Failure::new(Code::parse(&error.code).unwrap_or(Code::Internal), error.message).class(class);
        failure = error.causes.into_iter().fold(failure, Failure::cause);
        failure.retry_after = error.retry_after_us.map(Duration::from_micros);
        (failure.attempts, failure.max_attempts) = (error.attempts, error.attempts_max);
        failure
    }
}

/// Whole microseconds, rounded up, as far as a number goes.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// Adds a frame to a packet that is being written.
pub fn append(packet: &mut BytesMut, body: &Body) {
    encoded(body, |frame| packet.extend_from_slice(frame));
}

/// Says when a packet is sent, in one that begins with [`UNSTAMPED`].
pub(crate) fn stamp(packet: &mut BytesMut, sent_us: u64) {
    packet[1..UNSTAMPED.len()].copy_from_slice(&sent_us.to_le_bytes());
}

/// Frames that are longer leave no memory behind with which the next one is written.
const SCRATCH: usize = 64 << 10;

/// What a frame is as a part of a packet.
pub(crate) fn encoded<T>(body: &Body, then: impl FnOnce(&[u8]) -> T) -> T {
    thread_local! {
        static LAST: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    let mut frame = LAST.take();
    frame.clear();
    let length = body.encoded_len();
    frame.reserve(1 + length_delimiter_len(length) + length);
    frame.put_u8(FRAMES);
    let _there_is_room = encode_length_delimiter(length, &mut frame);
    body.encode(&mut frame);
    let outcome = then(&frame);
    if frame.capacity() <= SCRATCH {
        LAST.set(frame);
    }
    outcome
}

/// Tells the frames of a packet apart. Fields of a newer version are left out.
///
/// # Errors
/// If that cannot be done: then nothing in it can be read.
pub fn packet(bytes: Bytes) -> Result<Frames, DecodeError> {
    let (mut rest, mut sent_us) = (&bytes[..], 0);
    while !rest.is_empty() {
        let (tag, wire_type) = decode_key(&mut rest)?;
        match tag {
            FRAMES_TAG => check_wire_type(WireType::LengthDelimited, wire_type)?,
            SENT_TAG => {
                encoding::fixed64::merge(wire_type, &mut sent_us, &mut rest, DecodeContext::default())?;
                continue;
            }
            _ => {}
        }
        skip_field(wire_type, tag, &mut rest, DecodeContext::default())?;
    }
    Ok(Frames { rest: bytes, sent_us })
}

/// The frames of a packet, one after the other: however many there are, they take no memory before they are asked for.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    rest: Bytes,
    sent_us: u64,
}

impl Frames {
    /// How many bytes are left of the packet.
    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }

    /// When the packet was sent, by the sender's clock.
    pub(crate) fn sent_us(&self) -> u64 {
        self.sent_us
    }

    /// The next field, which is a frame or something else. The packet was looked through before, so there is no error.
    fn field(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let (tag, wire_type) = decode_key(&mut self.rest)?;
        let mut frame = Bytes::new();
        match tag {
            FRAMES_TAG => encoding::bytes::merge(wire_type, &mut frame, &mut self.rest, DecodeContext::default()).map(|()| Some(frame)),
            _ => skip_field(wire_type, tag, &mut self.rest, DecodeContext::default()).map(|()| None),
        }
    }
}

impl Iterator for Frames {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        while !self.rest.is_empty() {
            match self.field() {
                Ok(Some(frame)) => return Some(frame),
                Ok(None) => {}
                Err(_) => self.rest.clear(),
            }
        }
        None
    }
}

/// Reads a frame. Nothing if it is from a newer version.
///
/// # Errors
/// If it cannot be read.
pub fn frame(bytes: Bytes) -> Result<Option<Body>, DecodeError> {
    Frame::decode(bytes).map(|frame| frame.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_are_appended_are_a_packet() {
        let bodies = [
            Body::Ping(Number { number: 7 }),
            Body::Call(Request { number: 1, route: "transfer".into(), payload: Bytes::from_static(b"{}"), ..Request::default() }),
            Body::Chunk(Chunk { stream: StreamId { number: 3, mine: true }, place: 9, payload: Bytes::from(vec![1; 300]) }),
        ];
        let mut bytes = BytesMut::new();
        bodies.iter().for_each(|body| append(&mut bytes, body));
        let read: Vec<_> = packet(bytes.freeze()).unwrap().map(|bytes| frame(bytes).unwrap().unwrap()).collect();
        assert_eq!(read, bodies);
    }

    #[test]
    fn very_many_frames_take_no_memory_before_their_turn() {
        let many = Bytes::from([FRAMES, 0].repeat(1 << 20));
        let mut frames = packet(many).unwrap();
        let size = size_of::<Bytes>() + size_of::<u64>();
        assert_eq!((frames.len(), size_of_val(&frames)), (2 << 20, size), "they are no more than the packet and its time");
        assert_eq!((frames.next(), frames.count()), (Some(Bytes::new()), (1 << 20) - 1));
    }

    #[test]
    fn fields_of_a_newer_version_are_left_out_and_a_broken_packet_has_no_frames() {
        let newer = [&[0x20, 0x96, 0x01][..], &[FRAMES, 2, 7, 8], &[0x1a, 1, 9], &[FRAMES, 0]].concat();
        let frames: Vec<_> = packet(Bytes::from(newer.clone())).unwrap().collect();
        assert_eq!(frames, [Bytes::from_static(&[7, 8]), Bytes::new()]);
        assert_eq!(frames, Packet::decode(&newer[..]).unwrap().frames, "as the description has it");
        assert!(packet(Bytes::from([&newer[..], &[FRAMES, 3, 1]].concat())).is_err(), "not even the first of them");
        assert!(packet(Bytes::from_static(&[FRAMES_TAG as u8 * 8, 1])).is_err(), "a number is no frame");
        assert!(packet(Bytes::from_static(&[SENT_TAG as u8 * 8, 1])).is_err(), "nor is a short one a time");
    }

    #[test]
    fn a_packet_says_when_it_was_sent_wherever_that_stands() {
        let mut bytes = BytesMut::from(&UNSTAMPED[..]);
        append(&mut bytes, &Body::Ping(Number { number: 7 }));
        stamp(&mut bytes, 0x0102_0304_0506_0708);
        let stamped = bytes.freeze();
        assert_eq!(Packet::decode(stamped.clone()).unwrap().sent_us, 0x0102_0304_0506_0708, "as the description has it");
        let behind = Bytes::from([&stamped[UNSTAMPED.len()..], &stamped[..UNSTAMPED.len()]].concat());
        for bytes in [stamped, behind] {
            let frames = packet(bytes).unwrap();
            assert_eq!((frames.sent_us(), frames.count()), (0x0102_0304_0506_0708, 1));
        }
    }

    #[test]
    fn time_in_a_queue_is_taken_from_a_request_whose_sender_has_a_clock() {
        let left = |left_us, queued_us, sent_us| {
            let mut request = Request { left_us, queued_us, ..Request::default() };
            request.was_sent(sent_us);
            request.left_us
        };
        assert_eq!(left(100, 10, 70), 40);
        assert_eq!(left(100, 10, 110), 0);
        assert_eq!(left(100, 10, u64::MAX), 0);
        assert_eq!(left(100, 10, 10), 100, "it was sent at once");
        assert_eq!(left(100, 0, 70), 100, "it is not known when it was queued");
        assert_eq!(left(100, 10, 0), 100, "nor when it was sent");
    }

    #[test]
    fn a_frame_of_a_newer_version_is_nothing_and_one_that_is_cut_off_cannot_be_read() {
        assert_eq!(frame(Bytes::from_static(&[0xfa, 0x01, 0x01, 0x00])).unwrap(), None, "field 31");
        assert!(frame(Bytes::from_static(&[0x12, 0x05, 0x08])).is_err());
        assert!(packet(Bytes::from_static(&[FRAMES, 0x05, 0x08])).is_err());
    }

    #[test]
    fn a_failure_comes_out_as_it_went_in() {
        let mut failure = Failure::transient("full")
            .code(Code::ResourceExhausted)
            .cause("disk")
            .retry_after(Duration::from_millis(3));
        (failure.attempts, failure.max_attempts) = (2, Some(3));
        assert_eq!(Failure::from(Error::from(&failure)), failure);
        let newer = Error { code: "BRAND_NEW".into(), class: "odd".into(), message: "?".into(), ..Error::default() };
        let failure = Failure::from(newer);
        assert_eq!((failure.code, failure.class), (Code::Internal, Class::Permanent));
    }
}
