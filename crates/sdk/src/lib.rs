//! Durable workflows for Rust: work that survives crashes, restarts and sick dependencies.
//!
//! A workflow is an async function. What it does to the world it does in *steps*; the result of each step is recorded, a failed attempt is
//! retried by policy, a sleep outlasts the process. When the process dies, the next one replays what is on record and goes on from there.
//!
//! ```
//! use steadfast::{Ctx, Engine, Failure, HOUR, Policy, SECOND, workflow};
//!
//! #[workflow]
//! async fn greet(ctx: Ctx, name: String) -> Result<String, Failure> {
//!     let greeting = ctx.step("look-up", || async { Ok::<_, Failure>("Hello".to_string()) })
//!         .retry(Policy::exponential(SECOND).max_attempts(5))
//!         .timeout(10 * SECOND)
//!         .await?;
//!     ctx.sleep(24 * HOUR).await?;
//!     Ok(format!("{greeting}, {name}"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), steadfast::Error> {
//! # let clock = steadfast::VirtualClock::start();
//! let engine = Engine::in_memory() // Engine::open("data")? keeps everything in that folder
//! #   .clock(clock) // the day passes at once
//!     .register(greet)
//!     .start()
//!     .await?;
//! let run = engine.start("greet", &"Ada").id("greet-ada").await?; // the id makes it idempotent
//! let greeting: String = run.result().await?;
//! assert_eq!(greeting, "Hello, Ada");
//! # Ok(()) }
//! ```
//!
//! # What a workflow may do
//! Between steps, a workflow only decides: it must take the same way again when it is replayed. So everything that can differ from one time
//! to the next belongs into a step, and time and chance come from [`Ctx::now`], [`Ctx::random`] and [`Ctx::uuid`]. Steps run at least once: one
//! that was in flight when the process died runs again, so it should be safe to repeat.
//!
//! # Features
//! - `embedded`, on by default: the store in a folder, `Engine::open`. It brings SQLite along, which takes a C compiler.
//! - `messages`: calls and tells between processes, the module `messages`, and runs that are hosted by other processes, the module `worker`. It brings HTTP/2 and TLS along.
//! - `redis`: tenants that several instances share.
//! - `testing`: the module `testing`, for the tests of your own workflows. It turns on tokio's `test-util`: ask for it in dev-dependencies.

mod branches;
mod children;
pub mod cluster;
mod ctx;
mod engine;
mod error;
mod every;
mod graph;
mod heartbeat;
mod keys;
mod lease;
mod letters;
mod list;
mod means;
#[cfg(feature = "messages")]
pub mod messages;
mod operate;
mod plans;
mod settings;
mod sharing;
mod signal;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(feature = "messages")]
pub mod worker;
mod workflow;

pub use branches::{Join, Race};
pub use children::{Child, StartChild};
pub use ctx::{Ctx, Signal, Sleep, Step};
pub use engine::{Engine, EngineBuilder, Resolution, Run, StartRun, Why};
pub use error::Error;
pub use every::{Every, Tick};
pub use graph::{Graph, GraphError, Outputs};
pub use heartbeat::Heartbeat;
pub use keys::{
    CallbackPage, Change, DeleteKey, Expired, HeldKey, KeyPage, KeyStamp, ListKeys, PutKey, RenewKey, Watch, WatchKeys, Watched,
};
pub use lease::{AcquireLease, Lease, Lost};
pub use letters::{DeadLetter, LetterPage, RedriveAll, Redriven};
pub use list::{ListRuns, RunPage};
pub use operate::{Act, Retry};
pub use plans::{CreatePlan, Plan, PlanHandle, PlanInfo, Task, TaskInfo};
pub use settings::Settings;
pub use signal::SendSignal;
pub use steadfast_kernel::limit::Limit;
pub use steadfast_kernel::plan::{Cause, StopWhen};
pub use steadfast_kernel::run::{Ended, Preview, RetryContext};
pub use steadfast_kernel::{
    Checkpoint, Class, Code, Conflict, Direction, EntityId, Entry, Event, Failure, FailureError, Jitter, KeyName, LetterAbout, LetterHome,
    LetterId, LimitKey, MaxRetriesExceeded, MessageKind, OnFailure, Payload, PlanId, PlanStatus, Policy, Recovery, Revision, RunId, Status,
    StepId, Strategy, Target, TaskEvent, TaskStatus, TenantId, Timestamp, Wait,
};
pub use steadfast_macros::workflow;
pub use steadfast_runtime::clock::{Clock, SystemClock, VirtualClock};
pub use steadfast_runtime::{
    Call, Callbacks, Caller, Config, Fallback, Fed, Feed, Follow, Health, MessageLetter, Place, Position, Redeliver, Replayed, Retention,
    Role, RunView, Sharing, SharingHealth, SharingState, StepKind, StepStatus, StepView, Try,
};
pub use steadfast_store::{CallbackRow, LetterFilter, LetterKind, LetterRow, LockRow, RunRow, Store, memory};
#[cfg(feature = "redis")]
pub use steadfast_store_redis::Settings as RedisSettings;
pub use workflow::{Workflow, WorkflowResult};

use std::time::Duration;

/// One second, for durations that read well: `10 * SECOND`.
pub const SECOND: Duration = Duration::from_secs(1);
/// One minute.
pub const MINUTE: Duration = Duration::from_secs(60);
/// One hour.
pub const HOUR: Duration = Duration::from_secs(60 * 60);
/// One day of 24 hours.
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);
