//! Tests of your own workflows: hours pass at once, processes die when you say so, steps fail as you please.
//!
//! A [`Lab`] is a small world with an engine in it. Its time is virtual: it passes as soon as everything waits. Its process can die, at once or at an exact
//! place of the journal, and then the next one goes on from what is on record; what you ask the lab for outlives that. Any attempt of any step can be
//! made to [fail](Lab::fail_attempt), and its answer can be made to [get lost](Lab::lose_answer), without a change to the workflow.
//!
//! ```
//! use steadfast::testing::{Lab, crash_everywhere};
//! use steadfast::{Ctx, Failure, HOUR, Status, workflow};
//!
//! #[workflow]
//! async fn remind(ctx: Ctx, name: String) -> Result<String, Failure> {
//!     let address = ctx.step("look-up", || async { Ok::<_, Failure>(format!("{name}@example.org")) }).await?;
//!     ctx.sleep(24 * HOUR).await?;
//!     ctx.step("send", || async { Ok::<_, Failure>(()) }).await?;
//!     Ok(address)
//! }
//!
//! #[tokio::main(flavor = "current_thread")] // in a test: #[tokio::test]
//! async fn main() {
//!     let lab = Lab::new().register(remind).open().await;
//!     lab.fail_attempt("look-up", 1, Failure::transient("no route"));
//!     lab.start(remind, "remind-ada", &"ada").await;
//!
//!     lab.advance(23 * HOUR).await;
//!     lab.journal("remind-ada").await.step("look-up").completed().attempts(2);
//!     lab.journal("remind-ada").await.no_step("send");
//!
//!     lab.crash().await; // another process goes on
//!     assert_eq!(lab.result("remind-ada").await, Ok("ada@example.org".to_string()));
//!     lab.journal("remind-ada").await.ended(Status::Completed).step("send").after("look-up");
//!     assert_eq!(lab.calls("look-up").len(), 1, "what is on record is not done again");
//!
//!     let report = crash_everywhere(remind, &"ada").await;
//!     report.called_at_most("send", 2);
//! }
//! ```
//!
//! # Crashes everywhere
//! [`crash_everywhere`] plays a run once undisturbed, and then once for every commit that it made: the process dies just before the commit is durable, or
//! just after. Every time the run must end in the same way, with a journal that fits the code. The report tells how often each step was called.
//! [`LabBuilder::crash_everywhere`] does the same with a scenario of yours, which may send signals, cancel, start several runs, and look at what your fakes
//! have seen.
//!
//! # Plans
//! [`PlanCheck`] has a plan fail at every stage, run every stage twice, and undo twice.
//!
//! # Fakes
//! A lab runs on the thread of its test, and so does everything in it. Keep what fake services remember in a `thread_local!`: tests that run side by side then
//! do not see each other's. The ids of runs, and with them the idempotency keys, are the same in every play of a scenario: begin it with fresh fakes.
//!
//! # What a lab cannot do
//! Tasks, threads and blocking work that a step began outlive the process that "dies", and time does not wait for the network: it passes when everything
//! in the runtime waits, whatever for. Talk to fakes in the same process.
//!
//! # The feature
//! This module is behind the feature `testing`, because it turns on tokio's `test-util`. Ask for it where tests are built:
//!
//! ```toml
//! [dev-dependencies]
//! steadfast = { version = "…", features = ["testing"] }
//! ```

mod crash;
mod everywhere;
mod journal;
mod lab;
mod meddler;
mod plans;
mod world;

pub use crash::Crash;
pub use everywhere::{Play, Report, crash_everywhere};
pub use journal::{Journal, StepRecord};
pub use lab::{Lab, LabBuilder};
pub use meddler::Call;
pub use plans::PlanCheck;
