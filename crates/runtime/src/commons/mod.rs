//! Several instances with stores of their own, and what they share: who has a tenant's lock, who owns a task, how far it has come.
//!
//! ```text
//!   shard --Note: image after a commit--> worker --one round trip--> commons (Redis)
//!   shard <--SettleClaim, LoseLock, HandOverRun, AlertPlan-- worker
//!   a stage waits at the gate until its checkpoint is shared; the worker opens it
//! ```
//!
//! Where instances share one store, that says who has what, and the commons are a mirror only: `scribe.rs` writes it, `copies.rs` has the locks in it.
//!
//! `image.rs` is what others may know, `mirror.rs` what they were told of plans and tasks, `locks.rs` what is claimed, renewed and given back, `alone.rs` whether there is
//! anybody else, `gate.rs` what a stage waits for. `worker.rs` is the only one who writes; `walk.rs` finds what was left by an earlier life of this instance.
//!
//! Tested by `crates/sdk/tests/it/instances/outages/random.rs`.
//! Tested by `crates/cli/tests/it/instances.rs`.

mod alone;
mod copies;
mod gate;
mod image;
mod locks;
mod mirror;
mod scribe;
mod walk;
mod worker;

pub use alone::Fallback;
pub(crate) use gate::Gate;
pub(crate) use image::{Image, definition_hash};
pub(crate) use worker::{BLIP, Ports};

use crate::clock::Clock;
use crate::engine::WeakEngine;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Entity, EntityId, Entry, Event, InstanceId, RunId, TaskEvent, TaskStatus, TenantId, Timestamp};
use steadfast_store::{Commons, CommonsError, LockHolder, ShardId, SharedLock, SharedTask};
use tokio::sync::{mpsc, oneshot, watch};

/// How an instance shares tenants with others.
#[derive(Clone)]
pub struct Sharing {
    /// Where.
    pub commons: Arc<dyn Commons>,
    /// Who this is. It has to be the same after a restart on the same data.
    pub instance: InstanceId,
    /// After how long without a word others take this instance for gone: as the commons have it for the heartbeat.
    pub gone_after: Duration,
    /// How long plans, tasks and checkpoints are kept there after the last write: what is open is written again in time.
    pub kept_for: Duration,
    /// What is to become of new locks while the commons are away.
    pub fallback: Fallback,
    /// For how long another instance that is not seen any more may still have locks.
    pub lease: Duration,
    /// How long a stage waits for its checkpoint to be shared before it has failed.
    pub patience: Duration,
    /// The instances have one store, and that says who has what: the commons are written for people to see, and nothing waits for them. All instances of a store have the same name
    /// there then, and the three settings before this one mean nothing.
    pub mirror_only: bool,
}

impl Sharing {
    /// With the usual times.
    pub fn new(commons: Arc<dyn Commons>, instance: InstanceId) -> Self {
        Sharing {
            commons,
            instance,
            gone_after: Duration::from_secs(30),
            kept_for: Duration::from_secs(7 * 24 * 60 * 60),
            fallback: Fallback::Auto,
            lease: steadfast_kernel::plan::Settings::LEASE,
            patience: Duration::from_secs(10),
            mirror_only: false,
        }
    }
}

/// How an instance gets on with what it shares.
#[derive(Clone, Debug, PartialEq)]
pub struct SharingHealth {
    /// Who this is.
    pub instance: InstanceId,
    /// What is shared is a mirror only: nothing waits for it, whatever its state.
    pub mirror_only: bool,
    /// How it is.
    pub state: SharingState,
    /// Another instance, and when it was last seen.
    pub seen: Option<(InstanceId, Timestamp)>,
    /// How many plans and tasks others do not know the latest of.
    pub pending: usize,
    /// Since when.
    pub behind_since: Option<Timestamp>,
    /// Keys that hold something that none of us has put there.
    pub foreign: Vec<String>,
}

impl SharingHealth {
    pub(crate) fn starting(sharing: &Sharing) -> Self {
        let (instance, mirror_only) = (sharing.instance.clone(), sharing.mirror_only);
        SharingHealth {
            instance,
            mirror_only,
            state: SharingState::Starting,
            seen: None,
            pending: 0,
            behind_since: None,
            foreign: Vec::new(),
        }
    }
}

/// Whether the commons can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharingState {
    /// They were not reached since the start, or it is not known yet what they know.
    Starting,
    /// They can.
    Up,
    /// They cannot.
    Away {
        /// Since when.
        since: Timestamp,
        /// What was found.
        why: String,
        /// Why nothing new begins; nothing if it does, because there is nobody else.
        refuses: Option<String>,
    },
}

/// Those of these tasks that are there; one in whose place something else is keeps nobody from the others.
pub(crate) async fn tasks_of(commons: &dyn Commons, ids: &[RunId]) -> Result<Vec<SharedTask>, CommonsError> {
    match commons.tasks(ids).await {
        Err(CommonsError::Foreign { .. }) => {}
        tasks => return tasks,
    }
    let mut tasks = Vec::new();
    for id in ids {
        match commons.tasks(std::slice::from_ref(id)).await {
            Err(CommonsError::Foreign { .. }) => {}
            task => tasks.extend(task?),
        }
    }
    Ok(tasks)
}

/// The locks of those of these tenants that somebody has, likewise.
pub(crate) async fn locks_of(commons: &dyn Commons, tenants: &[TenantId]) -> Result<Vec<SharedLock>, CommonsError> {
    match commons.locks(tenants).await {
        Err(CommonsError::Foreign { .. }) => {}
        locks => return locks,
    }
    let mut locks = Vec::new();
    for tenant in tenants {
        match commons.locks(std::slice::from_ref(tenant)).await {
            Err(CommonsError::Foreign { .. }) => {}
            lock => locks.extend(lock?),
        }
    }
    Ok(locks)
}

/// Whether nothing more comes of a task. One that has failed may go on if a person wants it.
fn is_over(status: TaskStatus) -> bool {
    status.is_final() && !matches!(status, TaskStatus::Failed | TaskStatus::RollbackFailed)
}

/// What the worker is told.
pub(crate) enum Note {
    /// An entity is so now. It is fresh if it was made just now.
    Image { image: Image, fresh: bool },
    /// Nobody wanted that holding any more when it was granted.
    Unwanted { tenant: TenantId, holder: LockHolder },
    /// What an earlier life has left was looked at.
    Walked { left_over: Vec<(TenantId, LockHolder)> },
    /// A task was taken up, and has its tenant's lock there though not here.
    Adopted { tenant: TenantId, holder: LockHolder },
    /// More of that was found.
    LeftOver(Vec<(TenantId, LockHolder)>),
    /// Tell when others know all that is known here now.
    Settled(oneshot::Sender<()>),
    /// Somebody has found that the commons do not answer.
    Look,
    /// The engine ends in good order.
    Leaving,
    /// A shard is here from now on, with that term.
    Opened(ShardId, u64),
    /// It is not any more; it may be here again with another one.
    Closed(ShardId, u64),
    /// What is open in these could not be compared with what the commons know.
    Unwalked(BTreeSet<ShardId>),
}

/// Speaks with the commons until the shards have ended. `life` is different each time the engine is started.
pub(crate) fn speak(
    sharing: Sharing,
    clock: Arc<dyn Clock>,
    engine: WeakEngine,
    (life, shards): (String, u32),
    ports: Ports,
) -> BoxFuture<'static, ()> {
    match sharing.mirror_only {
        true => scribe::Scribe::new(sharing, clock, engine, shards, ports).run().boxed(),
        false => worker::Worker::new(sharing, clock, engine, life, ports).run().boxed(),
    }
}

/// The shard's and the engine's way to the worker.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) sharing: Sharing,
    pub(crate) health: watch::Receiver<SharingHealth>,
    pub(crate) notes: mpsc::WeakUnboundedSender<Note>,
    /// Tasks of others are taken up one after the other.
    pub(crate) adopting: Arc<tokio::sync::Mutex<()>>,
}

/// What the shard has of it: as long as it is there, the worker is.
#[derive(Clone)]
pub(crate) struct Notes {
    pub(crate) sender: mpsc::UnboundedSender<Note>,
    /// Where stages wait; nothing if the commons are a mirror only.
    pub(crate) gate: Option<Arc<Gate>>,
}

impl Notes {
    /// Whether it is the commons who say who has a lock.
    pub(crate) fn ask_for_locks(&self) -> bool {
        self.gate.is_some()
    }

    /// A shard was opened: what is open in it is told from now on by this instance.
    pub(crate) fn opened(&self, shard: ShardId, term: u64) {
        let _it_has_stopped = self.sender.send(Note::Opened(shard, term));
    }

    /// A shard has ended here.
    pub(crate) fn closed(&self, shard: ShardId, term: u64) {
        let _it_has_stopped = self.sender.send(Note::Closed(shard, term));
    }

    /// Entries of an entity are durable: before anything follows from them, a stage knows what it has to wait for.
    pub(crate) fn require(&self, id: &EntityId, entries: &[Entry]) {
        let (EntityId::Run(run), Some(gate)) = (id, &self.gate) else { return };
        let saved = entries.iter().rev().find(|entry| match &entry.event {
            Event::Task(event) => matches!(**event, TaskEvent::CheckpointSaved { .. }),
            _ => false,
        });
        if let Some(saved) = saved {
            gate.require(run, saved.seq);
        }
    }

    /// An entity is so now.
    pub(crate) fn note(&self, entity: &Entity, entries: &[Entry]) {
        let is_first = |entry: &Entry| entry.seq == 1;
        let adopted = |entry: &Entry| matches!(&entry.event, Event::Task(event) if matches!(**event, TaskEvent::Adopted { .. }));
        let fresh = entries.first().is_some_and(is_first) && !entries.iter().any(adopted);
        if let Some(image) = Image::of(entity) {
            let _it_has_stopped = self.sender.send(Note::Image { image, fresh });
        }
    }
}
