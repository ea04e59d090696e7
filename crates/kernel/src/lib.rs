//! The pure core of Steadfast.
//!
//! Everything that Steadfast decides is decided here, by functions without clock, chance, I/O or async:
//!
//! - [`run::decide`] looks at the state of a run and a [`Command`] and answers with journal [`Entry`]s and [`Effect`]s, or with a [`Refusal`];
//! - [`run::evolve`] folds an entry into the state. The same function runs live and at recovery.
//!
//! Around the run machine stand the words it speaks in: [`Failure`], [`Policy`], [`Timestamp`], [`Payload`], ids, wait reasons and the random
//! [`streams`](random). [`record`] is the form in which an entry is stored. Time and chance are always arguments.

pub mod backoff;
pub mod code;
mod command;
mod effect;
mod entity;
mod event;
mod failure;
mod id;
pub mod key;
pub mod letter;
pub mod limit;
pub mod lock;
pub mod machine;
mod message;
mod options;
mod payload;
mod period;
pub mod plan;
mod policy;
pub mod random;
pub mod record;
mod refusal;
pub mod route;
pub mod run;
pub mod snapshot;
mod task;
mod time;
mod timer;
mod wait;

pub use command::{
    AdoptRun, CancelRun, Claimed, Command, CreatePlan, DeleteKey, DropLetter, EndKey, ExpireKey, FailLetter, FireTimer, HandOver,
    OperatePlan, Proposal, PutKey, RecordHeartbeat, RedriveLetter, RenewKey, ReportCallback, ReportFailure, RetryFrom, RetryRun,
    SendSignal, SettleClaim, StartRun, TakeTurn,
};
pub use effect::{Answer, Completion, Effect};
pub use entity::{EntityId, LetterHome, LetterId, LimitKey};
pub use event::{Entry, Event, Heard, Retried};
pub use failure::{Class, Code, Failure, FailureError, MaxRetriesExceeded};
pub use id::{
    InstanceId, InvalidId, KeyName, PEER_MAX, PlanId, RouteName, RunId, StepId, TenantId, WorkflowName, check_peer, check_prefix,
    check_request, check_signal, check_tenant,
};
pub use key::{Callback, Held, Key, Target};
pub use lock::{Lock, LockEvent};
pub use machine::{Decision, Entity, IllegalTransition};
pub use message::{Envelope, Letter, LetterAbout, Message, StartChild, TaskChanged, Wants};
pub use options::{Limiting, Origin, Parent, Recovery, RunOptions};
pub use payload::{Encoding, Payload};
pub use period::Period;
pub use plan::{Plan, PlanCreated, PlanEvent, PlanStatus};
pub use policy::{GaveUp, InvalidPolicy, Jitter, Policy, Strategy, Verdict};
pub use record::Record;
pub use refusal::Refusal;
pub use route::{Direction, MessageKind, RouteBox};
pub use run::{Run, Status};
pub use snapshot::Snapshot;
pub use task::{Checkpoint, Conflict, Lease, OnFailure, TaskEvent, TaskOptions, TaskStatus, task_id};
pub use time::Timestamp;
pub use timer::{Timer, TimerName};
pub use wait::Wait;

/// A position in a journal: counted from 1, without gaps. Zero is the place before the first event.
pub type Seq = u64;

/// Which change of a key: it rises with every one, and is never given twice to the same key.
pub type Revision = u64;

/// Which life of a run an event belongs to. The first is 1.
pub type Epoch = u32;

/// The number of an attempt, counted from 1.
pub type Attempt = u32;
