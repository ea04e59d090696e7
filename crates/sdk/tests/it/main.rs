//! The engine through the SDK: the journals of the decision page, live, and what must hold around them.
#![allow(clippy::disallowed_methods, reason = "tests sleep in virtual time")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod crashes;
mod determinism;
mod faults;
mod journals;
mod limits;
mod panics;
mod readme;
mod shutdown;
mod starting;
mod support;
mod timing;
mod traps;
mod waiting;
