//! The wire over HTTP/2: a link is one stream of gRPC messages in either direction, each message a packet.
//!
//! What goes over it is what gRPC describes, so that proxies pass it and other languages reach it: `rpc Link(stream Packet) returns (stream Packet)`
//! of the service `steadfast.messaging.v1.Messaging`. [`Http2`] connects, a connection for every link; [`listen`](listen()) has a port of its own;
//! [`Service`] is for a router that has a port already.

mod client;
mod codec;
mod dial;
mod errors;
mod link;
mod listen;
mod moving;
mod service;
mod watched;

pub use client::Http2;
pub use listen::{ListenSettings, Listening, REFUSED_MAX, listen};
pub use service::{Authorize, Service};

use super::PACKET_BYTES_MAX;
use std::time::Duration;

/// Where on a server links are made.
pub const PATH: &str = "/steadfast.messaging.v1.Messaging/Link";

/// The longest piece of a stream in HTTP/2.
const FRAME_BYTES: u32 = 64 << 10;

/// What both ends of a link over HTTP/2 have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The longest packet, in bytes. A longer one ends its link; it is refused by the length that it claims.
    pub packet_bytes_max: usize,
    /// How much may be on its way to this end before it was read, in bytes: at least what fits on the way there and back.
    pub window_bytes: u32,
    /// A connection on which nothing came for so long is asked whether it is alive.
    pub ping_after: Duration,
    /// How long the answer may take before the connection is cut. It waits behind all that is on its way there, which may be long and the line slow; a node finds out by itself, and
    /// earlier, that the other end is dead.
    pub ping_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            packet_bytes_max: PACKET_BYTES_MAX,
            window_bytes: 4 << 20,
            ping_after: Duration::from_secs(5),
            ping_timeout: Duration::from_secs(60),
        }
    }
}
