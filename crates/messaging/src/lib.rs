//! Messages between processes that survive a bad network.

pub mod envelope;
mod limits;
pub mod wire;

pub use limits::Limits;
