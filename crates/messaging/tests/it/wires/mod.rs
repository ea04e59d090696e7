//! Wires: one contract for all of them, and what each has of its own.

mod contract;
#[cfg(feature = "http2")]
mod http2;
#[cfg(feature = "http2")]
mod limits;
#[cfg(feature = "http2")]
mod lossy;
mod memory;
#[cfg(feature = "http2")]
mod tls;
