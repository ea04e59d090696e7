//! Messages in chunks of bytes. A long message is cut into frames, so that something urgent can pass between them; several frames may share a chunk, and one may be
//! spread over several chunks.
//!
//! A frame begins with its length and its kind in one number of variable length: a whole message, a part of one, or the last part. Parts of two messages do not mix.

use super::Broken;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The head of a frame has at most so many bytes.
const HEAD_BYTES_MAX: usize = 5;

/// How a frame belongs to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is one.
    Whole = 0,
    /// It is a part, and more follow.
    Part = 1,
    /// It is the last part.
    Last = 2,
}

/// Takes messages out of chunks.
pub(crate) struct Frames {
    /// How long a message may be.
    max: usize,
    /// What came last, if nothing was left of what came before.
    whole: Bytes,
    /// What is not a whole frame yet.
    rest: BytesMut,
    /// What is not a whole message yet.
    parts: BytesMut,
}

impl Frames {
    pub(crate) fn new(max: usize) -> Self {
        Frames { max, whole: Bytes::new(), rest: BytesMut::new(), parts: BytesMut::new() }
    }

    /// Another chunk has come.
    pub(crate) fn add(&mut self, chunk: Bytes) {
        match self.rest.is_empty() && self.whole.is_empty() {
            true => self.whole = chunk,
            false => {
                self.rest.extend_from_slice(&std::mem::take(&mut self.whole));
                self.rest.extend_from_slice(&chunk);
            }
        }
    }

    /// The next message that is whole.
    ///
    /// # Errors
    /// If it is longer than allowed, or a frame is none.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        while let Some((kind, frame)) = self.frame()? {
            match kind {
                Kind::Whole => return Ok(Some(frame)),
                Kind::Part => self.parts.extend_from_slice(&frame),
                Kind::Last => {
                    self.parts.extend_from_slice(&frame);
                    return Ok(Some(std::mem::take(&mut self.parts).freeze()));
                }
            }
        }
        Ok(None)
    }

    fn frame(&mut self) -> Result<Option<(Kind, Bytes)>, Broken> {
        let bytes: &[u8] = if self.rest.is_empty() { &self.whole } else { &self.rest };
        let Some((head, kind, length)) = head(bytes)? else { return Ok(None) };
        let before = if kind == Kind::Whole { 0 } else { self.parts.len() };
        if length > self.max.saturating_sub(before) {
            return Err(Broken(format!("a message has {} bytes, at most {} are allowed", length.saturating_add(before), self.max)));
        }
        if bytes.len() - head < length {
            return Ok(None);
        }
        Ok(Some(if self.rest.is_empty() {
            self.whole.advance(head);
            (kind, self.whole.split_to(length))
        } else {
            self.rest.advance(head);
            (kind, self.rest.split_to(length).freeze())
        }))
    }
}

/// Puts the head of a frame.
pub(super) fn put_head(buffer: &mut BytesMut, kind: Kind, length: usize) {
    let mut head = length << 2 | kind as usize;
    while head >= 0x80 {
        buffer.put_u8(head as u8 | 0x80);
        head >>= 7;
    }
    buffer.put_u8(head as u8);
}

/// The head that stands in front: how long it is itself, the kind, and the length of what follows; nothing if it is not there yet.
fn head(bytes: &[u8]) -> Result<Option<(usize, Kind, usize)>, Broken> {
    let mut head = 0_usize;
    for (index, byte) in bytes.iter().take(HEAD_BYTES_MAX).enumerate() {
        head |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let kind = match head & 3 {
                0 => Kind::Whole,
                1 => Kind::Part,
                2 => Kind::Last,
                _ => return Err(Broken("a frame is of no kind".into())),
            };
            return Ok(Some((index + 1, kind, head >> 2)));
        }
    }
    if bytes.len() < HEAD_BYTES_MAX { Ok(None) } else { Err(Broken("a frame has no length".into())) }
}
