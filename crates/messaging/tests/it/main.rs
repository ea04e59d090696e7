//! Nodes and wires, as their users see them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test may panic, and says how to repeat it")]

mod calls;
mod network;
mod wires;
