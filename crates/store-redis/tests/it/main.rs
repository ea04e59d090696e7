//! What instances share in Redis, on real servers.
#![allow(clippy::unwrap_used, reason = "what the tests share may panic as they do")]

mod away;
mod checkpoints;
mod foreign;
mod help;
mod keys;
mod locks;
mod login;
mod model;
mod plans;
mod round_trips;
mod sentinel;
mod snapshots;
mod tasks;
