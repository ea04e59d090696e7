//! Compares the interfaces of the server with their committed snapshots.

mod metrics;
mod openapi;
