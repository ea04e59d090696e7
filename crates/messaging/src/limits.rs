//! How much of everything a node takes.

use crate::newest::Newest;
use std::time::Duration;

/// The bounds of a node. What is beyond them is refused, with `RESOURCE_EXHAUSTED` where it may work later.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest payload, in bytes.
    pub payload_bytes_max: usize,
    /// Calls and tells that wait for their answer, per peer.
    pub calls_open_max: usize,
    /// What waits to be written to one peer, in bytes.
    pub outgoing_bytes_max: usize,
    /// Requests of others that run or wait for their turn, of all routes.
    pub requests_max: usize,
    /// Their payloads, in bytes.
    pub requests_bytes_max: usize,
    /// Connections, from either side. Those that this side has made and on which nothing is under way make room for others.
    pub connections_max: usize,
    /// Peers that are known.
    pub peers_max: usize,
    /// Streams that are open, per connection.
    pub streams_max: usize,
    /// What has come of all streams of a connection and was not taken, in bytes.
    pub streams_bytes_max: usize,
    /// Pieces of a stream that may be on their way; a long piece counts once for every 64 KiB. Fewer where many streams share a connection.
    pub stream_window: u32,
    /// Samples that wait to be sent or dealt with, per connection and per route: beyond it the oldest is dropped.
    pub samples_max: usize,
    /// Their payloads, in bytes, likewise; a single one that is longer waits all the same.
    pub samples_bytes_max: usize,
    /// How long to wait for a connection and for the other side's first word.
    pub connect_timeout: Duration,
    /// A connection on which nothing came for so long is asked whether it is alive.
    pub ping_after: Duration,
    /// A connection on which nothing came for so long is dead; one on which something comes and nothing goes out, though something waits, after eight times as long.
    pub dead_after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            payload_bytes_max: 4 << 20,
            calls_open_max: 16_384,
            outgoing_bytes_max: 16 << 20,
            requests_max: 16_384,
            requests_bytes_max: 64 << 20,
            connections_max: 1024,
            peers_max: 4096,
            streams_max: 256,
            streams_bytes_max: 64 << 20,
            stream_window: 64,
            samples_max: 64,
            samples_bytes_max: 8 << 20,
            connect_timeout: Duration::from_secs(5),
            ping_after: Duration::from_secs(5),
            dead_after: Duration::from_secs(15),
        }
    }
}

impl Limits {
    /// A line for samples.
    pub(crate) fn samples<T>(&self) -> Newest<T> {
        Newest::new(self.samples_max.max(1), self.samples_bytes_max)
    }
}

/// How long somebody waits who was refused because there are too many: connections, streams or peers, of which one is over now and then.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The longest name of a route, node or request, in bytes.
pub(crate) const NAME_MAX: usize = 200;

/// The longest trace context, in bytes.
pub(crate) const TRACE_MAX: usize = 256;

/// What a frame has beside its payload, at the most.
pub(crate) const FRAME_OVERHEAD: usize = 16 << 10;
