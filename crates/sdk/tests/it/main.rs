//! The engine through the SDK: the journals of the decision page, live, and what must hold around them.
#![allow(clippy::disallowed_methods, reason = "tests sleep in virtual time")]
#![allow(clippy::print_stdout, reason = "seeds are printed")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod approvals;
mod branches;
mod changed;
mod children;
mod cluster;
mod continuing;
mod crashes;
mod dead_letters;
mod dead_messages;
mod determinism;
mod doubt;
mod epochs;
mod every;
mod faults;
mod feed;
mod full_disk;
mod golden;
mod graphs;
mod heartbeats;
mod instances;
mod interrupted;
mod journals;
mod keys;
mod last_words;
mod limits;
mod listing;
mod messages;
mod outbox;
mod panics;
mod pausing;
mod plans;
mod programs;
mod races;
mod readme;
mod redelivered;
mod redrive_all;
mod retention;
mod saved;
mod scenarios;
mod shutdown;
mod signals;
mod slots;
mod starting;
mod support;
mod testing;
mod timing;
mod torture;
mod traps;
mod undo;
mod versions;
mod waiting;
