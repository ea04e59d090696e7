//! Reads whatever bytes there are, as a node does with what comes from outside, and checks what must hold. For the fuzzer and for tests.

use crate::envelope::{self, Body, CAUSES_MAX, Error, Packet};
use bytes::{Bytes, BytesMut};
use prost::{DecodeError, Message};
use steadfast_kernel::Failure;

/// Reads bytes as a packet, its frames, and the failures in them. Gives the frames that could be read and are of this version.
///
/// # Errors
/// If they are no packet.
///
/// # Panics
/// If something does not hold: what was read takes no more memory than its bytes allow for and the few causes of a failure need, whatever lengths they claim, and if it is written and read
/// again, it is the same.
pub fn read(bytes: &[u8]) -> Result<Vec<Body>, DecodeError> {
    let packet = envelope::packet(Bytes::copy_from_slice(bytes))?;
    let sent_us = packet.sent_us();
    let frames: Vec<_> = packet.collect();
    assert_eq!(Packet::decode(bytes), Ok(Packet { frames: frames.clone(), sent_us }), "as the description has it");
    assert!(frames.len() * 2 <= bytes.len(), "a frame takes two bytes at the least");
    assert!(frames.iter().map(Bytes::len).sum::<usize>() <= bytes.len(), "frames do not overlap");
    Ok(frames.into_iter().filter_map(read_frame).collect())
}

fn read_frame(bytes: Bytes) -> Option<Body> {
    let length = bytes.len();
    let body = envelope::frame(bytes).ok()??;
    assert!(memory(&body) <= length + CAUSES_MAX * size_of::<String>(), "{length} bytes became {}", memory(&body));
    assert_eq!(again(&body).as_ref(), Some(&body));
    if let Some(error) = error(&body) {
        let failure = Failure::from(error.clone());
        assert_eq!(Failure::from(Error::from(&failure)), failure);
    }
    Some(body)
}

/// Written and read again.
fn again(body: &Body) -> Option<Body> {
    let mut packet = BytesMut::new();
    envelope::append(&mut packet, body);
    let mut frames = envelope::packet(packet.freeze()).ok()?;
    let frame = frames.next()?;
    assert_eq!(frames.next(), None);
    envelope::frame(frame).ok()?
}

fn error(body: &Body) -> Option<&Error> {
    match body {
        Body::Reply(reply) => reply.error.as_ref(),
        Body::Close(close) => close.error.as_ref(),
        Body::Hello(hello) => hello.refused.as_ref(),
        _ => None,
    }
}

/// What a frame holds beside its own size.
fn memory(body: &Body) -> usize {
    let variable = match body {
        Body::Hello(hello) => reserved(&hello.node),
        Body::Call(request) | Body::Tell(request) => {
            let names = reserved(&request.route) + reserved(&request.id) + reserved(&request.behalf);
            names + reserved(&request.trace) + request.payload.len()
        }
        Body::Reply(reply) => reply.payload.len(),
        Body::Open(open) => reserved(&open.route) + reserved(&open.trace) + open.payload.len(),
        Body::Chunk(chunk) => chunk.payload.len(),
        Body::Sample(sample) => reserved(&sample.route) + sample.payload.len(),
        Body::Cancel(_) | Body::Credit(_) | Body::Close(_) | Body::Ping(_) | Body::Pong(_) => 0,
    };
    variable + error(body).map_or(0, memory_of_error)
}

fn memory_of_error(error: &Error) -> usize {
    let texts = reserved(&error.code) + reserved(&error.class) + reserved(&error.message);
    texts + error.causes.iter().map(reserved).sum::<usize>() + error.causes.capacity() * size_of::<String>()
}

/// What a text has reserved. The least that is reserved for any is eight bytes, also for a text of one; each time that is too little, it is doubled, which is no more than came.
#[allow(clippy::ptr_arg, reason = "a slice does not know what was reserved")]
fn reserved(text: &String) -> usize {
    text.capacity().saturating_sub(7)
}
