//! The engine through the SDK: the journals of the decision page, live, and what must hold around them.
#![allow(clippy::disallowed_methods, reason = "tests sleep in virtual time")]
#![allow(clippy::print_stdout, reason = "seeds are printed")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod branches;
mod changed;
mod crashes;
mod determinism;
mod doubt;
mod faults;
mod graphs;
mod journals;
mod limits;
mod panics;
mod programs;
mod races;
mod readme;
mod scenarios;
mod shutdown;
mod signals;
mod starting;
mod support;
mod timing;
mod torture;
mod traps;
mod undo;
mod versions;
mod waiting;
