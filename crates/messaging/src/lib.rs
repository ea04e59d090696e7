//! Messages between processes that survive a bad network.

pub mod envelope;
pub mod inbox;
mod limits;
pub mod wire;

pub use limits::Limits;
