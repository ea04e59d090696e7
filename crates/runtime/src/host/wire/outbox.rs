//! What waits to be sent over a line, in chunks of whole frames. What is urgent goes first, between two chunks: a beat does not wait behind a journal.

use super::frames::{Kind, put_head};
use bytes::{Bytes, BytesMut};
use prost::Message;
use std::collections::VecDeque;

/// What waits is put into one chunk up to about this size. A beat waits behind what was handed on before it, so chunks are short.
const CHUNK_BYTES: usize = 16 << 10;

/// A frame is not longer.
const FRAME_BYTES: usize = 16 << 10;

/// What waits to be sent.
#[derive(Default)]
pub(crate) struct Outbox {
    urgent: BytesMut,
    /// Those chunks that are full.
    full: VecDeque<Bytes>,
    /// The one that is being filled.
    last: BytesMut,
}

impl Outbox {
    /// Puts a message behind all others.
    pub(super) fn put(&mut self, message: &impl Message) {
        let length = message.encoded_len();
        if length <= FRAME_BYTES {
            put_head(&mut self.last, Kind::Whole, length);
            let _the_buffer_grows = message.encode(&mut self.last);
            return self.close_full();
        }
        let mut rest = Bytes::from(message.encode_to_vec());
        while !rest.is_empty() {
            let part = rest.split_to(rest.len().min(FRAME_BYTES));
            put_head(&mut self.last, if rest.is_empty() { Kind::Last } else { Kind::Part }, part.len());
            self.last.extend_from_slice(&part);
            self.close_full();
        }
    }

    /// Puts a short message before all others that are not urgent.
    pub(super) fn put_urgent(&mut self, message: &impl Message) {
        put_head(&mut self.urgent, Kind::Whole, message.encoded_len());
        let _the_buffer_grows = message.encode(&mut self.urgent);
    }

    fn close_full(&mut self) {
        if self.last.len() >= CHUNK_BYTES {
            self.full.push_back(self.last.split().freeze());
        }
    }

    /// What is to be sent next.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
        if !self.urgent.is_empty() {
            return Some(self.urgent.split().freeze());
        }
        self.full.pop_front().or_else(|| (!self.last.is_empty()).then(|| self.last.split().freeze()))
    }

    /// Whether there is a chunk that is full.
    pub(crate) fn is_full(&self) -> bool {
        !self.full.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.full.is_empty() && self.last.is_empty()
    }
}
