//! Several instances with stores of their own, and what they share: who has a tenant's lock, who owns a task, how far it has come.
//!
//! ```text
//!   shard --Note: image after a commit--> worker --one round trip--> commons (Redis)
//!   shard <--SettleClaim, LoseLock, HandOverRun, AlertPlan-- worker
//!   a stage waits at the gate until its checkpoint is shared; the worker opens it
//! ```
//!
//! `image.rs` is what others may know, `mirror.rs` what they were told of plans and tasks, `locks.rs` what is claimed, renewed and given back, `alone.rs` whether there is
//! anybody else, `gate.rs` what a stage waits for. `worker.rs` is the only one who writes; `walk.rs` finds what was left by an earlier life of this instance.

mod alone;
mod gate;
mod image;
mod locks;
mod mirror;
mod walk;
mod worker;

pub use alone::Fallback;
pub(crate) use gate::Gate;
pub(crate) use image::{Image, definition_hash};
pub(crate) use worker::{BLIP, Ports, Worker};

use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Entity, EntityId, Entry, Event, InstanceId, RunId, TaskEvent, TaskStatus, TenantId, Timestamp};
use steadfast_store::{Commons, CommonsError, LockHolder, SharedLock, SharedTask};
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
        }
    }
}

/// How an instance gets on with what it shares.
#[derive(Clone, Debug, PartialEq)]
pub struct SharingHealth {
    /// Who this is.
    pub instance: InstanceId,
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
    pub(crate) fn starting(instance: InstanceId) -> Self {
        SharingHealth { instance, state: SharingState::Starting, seen: None, pending: 0, behind_since: None, foreign: Vec::new() }
    }
}

/// Whether the commons can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharingState {
    /// They were not reached since the start.
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
}

/// The shard's and the engine's way to the worker.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) sharing: Sharing,
    pub(crate) gate: Arc<Gate>,
    pub(crate) health: watch::Receiver<SharingHealth>,
    pub(crate) notes: mpsc::WeakUnboundedSender<Note>,
    /// Tasks of others are taken up one after the other.
    pub(crate) adopting: Arc<tokio::sync::Mutex<()>>,
}

/// What the shard has of it: as long as it is there, the worker is.
#[derive(Clone)]
pub(crate) struct Notes {
    pub(crate) sender: mpsc::UnboundedSender<Note>,
    pub(crate) gate: Arc<Gate>,
}

impl Notes {
    /// Entries of an entity are durable: before anything follows from them, a stage knows what it has to wait for.
    pub(crate) fn require(&self, id: &EntityId, entries: &[Entry]) {
        let EntityId::Run(run) = id else { return };
        let saved = entries.iter().rev().find(|entry| match &entry.event {
            Event::Task(event) => matches!(**event, TaskEvent::CheckpointSaved { .. }),
            _ => false,
        });
        if let Some(saved) = saved {
            self.gate.require(run, saved.seq);
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
