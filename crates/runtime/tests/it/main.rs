//! The engine from outside, with workers in other processes: lines in memory, virtual time.
#![allow(clippy::disallowed_methods, reason = "tests sleep in virtual time")]
#![allow(clippy::print_stdout, reason = "seeds are printed")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod remote;
