//! What goes over the wire, one file per shape: plain structs that the server writes, and that clients in Rust read.
//!
//! JSON is camelCase, times are RFC 3339 in UTC, durations end in `Ms`.

mod answer;
mod callback;
mod cluster;
mod data;
mod elsewhere;
mod event;
mod failure;
mod feed;
mod health;
mod key;
mod letter;
mod lock;
mod message;
mod page;
mod plan;
mod problem;
mod request;
mod run;
mod step;
mod task;
mod time;
mod wait;
mod worker;
mod workflow;

pub use answer::{Mismatch, Replayed, Retried, RetryPreview, SignalReceived};
pub use callback::Callback;
pub use cluster::{Cluster, Instance, ShardLease};
pub use data::Data;
pub use event::{Event, EventPayload};
pub use failure::Failure;
pub use feed::Change;
pub use health::{Alive, Dependency, Ready};
pub use key::{ExpiryRun, Key, KeyDeleted, KeyKept, OnExpire, PutKey, RenewKey};
pub use letter::{Letter, LetterRefused, LettersRedriven, RedriveLetters};
pub use lock::{Lock, Locked};
pub use message::{ConnectedNode, Inbox, MessageTotals, Messages};
pub use page::Page;
pub use plan::{Plan, PlanSettings, PlanStatus, PlanSummary, PlanTask, Progress, StopWhen};
pub use problem::Problem;
pub use request::{CancelRun, CreatePlan, Reason, RetryRun, RetryTask, SendSignal, StartRun};
pub use run::{Child, RetryContext, Run, RunResult, RunSummary, Status};
pub use step::{Step, StepStatus, Try, step_name};
pub use task::{Checkpoint, CurrentStage, RunTask, Task, TaskStatus};
pub use time::Time;
pub use wait::Wait;
pub use worker::{Worker, Workers};
pub use workflow::{PlanTerms, Version, Workflow, Workflows};

pub(crate) use run::recovery;
