//! Packets as gRPC messages: bytes that nobody looks into.

use bytes::{Buf, BufMut, Bytes};
use tonic::Status;
use tonic::codec::{BufferSettings, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Packets that are ready are written together up to about so many bytes.
const TOGETHER: usize = 64 << 10;

/// How many bytes a buffer grows by.
const BUFFER: usize = 16 << 10;

/// Packets as they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw;

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, packet: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.reserve(packet.len());
        to.put_slice(&packet);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER, TOGETHER)
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    /// Takes a packet out of what was read without a copy.
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER, TOGETHER)
    }
}
