//! What instances share in Redis, on real servers.

mod checkpoints;
mod foreign;
mod help;
mod keys;
mod locks;
mod plans;
mod tasks;
