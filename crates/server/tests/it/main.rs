//! The server against real HTTP clients, on real engines.

mod access;
mod feed;
mod limits;
mod openapi;
mod problems;
mod property;
mod runs;
mod schema;
mod shutdown;
mod support;
