//! Definitions from the outside: what is said about wrong ones, and what right ones do.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod calls;
mod crashes;
mod foreach;
mod guide;
mod http;
mod kinds;
mod library;
mod plans;
mod plays;
mod run;
mod server;
mod snapshots;
mod support;
mod terms;
mod undo;
mod wrong;
