//! The server against real HTTP clients, on real engines.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test may panic, and says how to repeat it")]

mod access;
mod cluster;
mod feed;
mod instances;
mod keys;
mod letters;
mod limits;
mod messages;
mod openapi;
mod pages;
mod plans;
mod problems;
mod property;
mod runs;
mod schema;
mod shutdown;
mod snapshots;
mod support;
mod workers;
