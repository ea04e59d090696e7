//! What carries Steadfast's decisions out.
//!
//! The kernel decides, a store keeps; this crate stands between them:
//!
//! - the shard takes commands in, one at a time, decides on cached state and submits batches;
//! - the committer merges what is waiting into durable commits;
//! - the timer keeper says when something is due;
//! - callbacks tell of the ends of keys, a lane per target;
//! - [`Redeliver`] is who can send or handle messages of dead letters again;
//! - [`host`] polls the futures of workflow code, by turns;
//! - a [`Worker`] does that in another process, for an engine that it is attached to;
//! - the lease keeper shares the shards of a store with other instances;
//! - the commons' worker shares plans, tasks and locks with other instances;
//! - [`Engine`] is the handle that others ask through.
//!
//! `docs/decisions/0001-the-turn.md` tells how code and journal move together.

mod callbacks;
mod chance;
pub mod clock;
mod cluster;
mod committer;
mod commons;
mod config;
mod engine;
mod error;
mod feed;
mod health;
pub mod host;
#[doc(hidden)]
pub mod measure;
pub mod metrics;
mod outbox;
mod redeliver;
mod retention;
mod shard;
mod timers;

pub use callbacks::{Call, Callbacks, Caller, Expired, Handler, Handlers};
pub use cluster::{Carrier, Cluster, ClusterView, Question};
pub use commons::{Fallback, Sharing, SharingHealth, SharingState};
pub use config::Config;
pub use engine::{
    Builder, CreatePlan, Elsewhere, ElsewherePlan, Engine, Found, FoundPlan, Lag, Put, RedriveLetters, RedrivenLetters, Start, Wanted,
    WeakEngine,
};
pub use error::Error;
pub use feed::{Fed, Feed, Follow, Place, Position};
pub use health::Health;
pub use host::{Attempted, Code, Observer, PlanSpec, Registered, Registry, Replayed, RunEnded, Span, Terms};
pub use host::{Broken, Duplex, Gone, Hello, Offer, Parted, Places, Worker, WorkerView, Workers};
pub use redeliver::{MessageLetter, Redeliver};
pub use retention::Retention;
pub use shard::{RunView, TaskView};
pub use steadfast_kernel::run::{StepKind, StepStatus, StepView, Try};
pub use timers::{Leadership, Role};
