//! Messages in chunks of bytes: each has its length before it, several may share a chunk, and one may be spread over several.

use super::Broken;
use bytes::{Buf, Bytes, BytesMut};

/// A length has at most so many bytes.
const LENGTH_BYTES_MAX: usize = 5;

/// Takes messages out of chunks.
pub(crate) struct Frames {
    /// How long a message may be.
    max: usize,
    /// What came last, if nothing was left of what came before.
    whole: Bytes,
    /// What is not whole yet.
    part: BytesMut,
}

impl Frames {
    pub(crate) fn new(max: usize) -> Self {
        Frames { max, whole: Bytes::new(), part: BytesMut::new() }
    }

    /// Another chunk has come.
    pub(crate) fn add(&mut self, chunk: Bytes) {
        match self.part.is_empty() && self.whole.is_empty() {
            true => self.whole = chunk,
            false => {
                self.part.extend_from_slice(&std::mem::take(&mut self.whole));
                self.part.extend_from_slice(&chunk);
            }
        }
    }

    /// The next message that is whole.
    ///
    /// # Errors
    /// If it is longer than allowed, or its length is none.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        let bytes: &[u8] = if self.part.is_empty() { &self.whole } else { &self.part };
        let Some((head, length)) = length(bytes)? else { return Ok(None) };
        if length > self.max {
            return Err(Broken(format!("a message has {length} bytes, at most {} are allowed", self.max)));
        }
        if bytes.len() - head < length {
            return Ok(None);
        }
        Ok(Some(if self.part.is_empty() {
            self.whole.advance(head);
            self.whole.split_to(length)
        } else {
            self.part.advance(head);
            self.part.split_to(length).freeze()
        }))
    }
}

/// The length that stands in front, and how long it is itself; nothing if it is not there yet.
fn length(bytes: &[u8]) -> Result<Option<(usize, usize)>, Broken> {
    let mut length = 0_usize;
    for (index, byte) in bytes.iter().take(LENGTH_BYTES_MAX).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((index + 1, length)));
        }
    }
    if bytes.len() < LENGTH_BYTES_MAX { Ok(None) } else { Err(Broken("a message has no length".into())) }
}
