//! The run machine from outside: commands in, entries and effects out, folded as a shard would.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "what the tests share may panic as they do")]

mod architecture;
mod arrows;
mod decide;
mod error_pages;
mod evolve;
mod facts;
mod golden;
mod journals;
mod plans;
mod script;
mod snapshot;
mod steps;
mod support;
