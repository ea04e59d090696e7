//! What instances with stores of their own have in common: who has a tenant's lock, who owns a task, and how far it has come.

use async_trait::async_trait;
use std::fmt;
use std::time::Duration;
use steadfast_kernel::{InstanceId, Payload, PlanId, PlanStatus, RunId, Seq, TaskStatus, TenantId, Timestamp};

/// The place that instances share. It is the truth for owners, locks and fences, and a mirror of the rest.
///
/// Every write compares what it finds with what the writer knows, in one step with the change, and may be sent again: the second time changes nothing.
#[async_trait]
pub trait Commons: Send + Sync + 'static {
    /// Carries these out in order, in one round trip; each has an outcome of its own, in the same order.
    ///
    /// # Errors
    /// If the commons cannot be reached, or do not let us in. Any of them may have been carried out.
    async fn send(&self, writes: Vec<Write>) -> Result<Vec<Wrote>, CommonsError>;

    /// A plan.
    async fn plan(&self, plan: &PlanId) -> Result<Option<SharedPlan>, CommonsError>;

    /// Those of these tasks that are there, in that order, in one round trip.
    async fn tasks(&self, tasks: &[RunId]) -> Result<Vec<SharedTask>, CommonsError>;

    /// The task that a tenant had last.
    async fn task_of(&self, tenant: &TenantId) -> Result<Option<RunId>, CommonsError>;

    /// How far a task has come.
    async fn checkpoint(&self, task: &RunId) -> Result<Option<SharedCheckpoint>, CommonsError>;

    /// The locks of these tenants that somebody has, in that order, in one round trip.
    async fn locks(&self, tenants: &[TenantId]) -> Result<Vec<SharedLock>, CommonsError>;

    /// Who has the locks of these tenants, in that order; nothing where nobody has, or something else is there. For those who look at many of them again and again.
    async fn holders(&self, tenants: &[TenantId]) -> Result<Vec<Option<LockHolder>>, CommonsError>;

    /// The fence of a tenant's last holding; 0 if nothing is known.
    async fn fence(&self, tenant: &TenantId) -> Result<u64, CommonsError>;

    /// Those of these instances that live.
    async fn alive(&self, instances: &[InstanceId]) -> Result<Vec<InstanceId>, CommonsError>;

    /// Looks for instances that live, a bounded piece at a time: the place to go on from, 0 after the last piece, and who was found in this one.
    async fn instances(&self, from: u64) -> Result<(u64, Vec<InstanceId>), CommonsError>;
}

/// A change of what is shared.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// An instance lives. [`Wrote::Before`] says what was there.
    Beat {
        /// Which.
        instance: InstanceId,
        /// What is to be known of it: different in every life of it.
        says: String,
    },
    /// An instance ends, and what it has may be taken up by others at once.
    Leave {
        /// Which.
        instance: InstanceId,
        /// As it said when it lived: another life of it is left alone.
        says: String,
    },
    /// Fields of a plan. Refused if another instance owns it or what is there is of a later state, [`Wrote::Missing`] if it is not there and these are not all.
    Plan {
        /// Which.
        plan: PlanId,
        /// Whose it is.
        owner: InstanceId,
        /// What has changed.
        fields: Vec<(PlanField, String)>,
        /// These are all fields that it has.
        whole: bool,
        /// Of which state they are, if several may write under one name.
        as_of: Option<AsOf>,
    },
    /// Fields of a task. Refused if another instance owns it with this fence or a higher one, or the fence there is higher; [`Wrote::Missing`] if it is not there
    /// and these are not all. Where it is known of which states both are, it is refused if another instance owns it or what is there is of a later one.
    Task {
        /// Which.
        task: RunId,
        /// Whose it is.
        owner: InstanceId,
        /// The fence of its last holding of the lock; 0 before the first.
        fence: u64,
        /// What has changed, but for owner and fence.
        fields: Vec<(TaskField, String)>,
        /// These are all fields that it has.
        whole: bool,
        /// Of which state they are, if several may write under one name.
        as_of: Option<AsOf>,
    },
    /// A task goes to another owner, if it is still that owner's with that fence; to nobody, if there is no new owner.
    Adopt {
        /// Which.
        task: RunId,
        /// Whose it was, and with which fence; an owner that is nobody has handed it over.
        from: (Option<InstanceId>, u64),
        /// Whose it is now.
        to: Option<InstanceId>,
        /// The fence of the new owner's holding.
        fence: u64,
    },
    /// The task that a tenant had last.
    Index {
        /// Whose.
        tenant: TenantId,
        /// Which.
        task: RunId,
        /// One that is there is left alone, but lives on.
        unless_there: bool,
    },
    /// How far a task has come. Refused if what is there has a higher fence, or this fence and a higher version.
    Checkpoint {
        /// Of which task.
        task: RunId,
        /// How far.
        checkpoint: Box<SharedCheckpoint>,
    },
    /// A task begins from its start: what is there of the same or a lower fence is removed.
    DropCheckpoint {
        /// Of which task.
        task: RunId,
        /// The fence of its holding.
        fence: u64,
    },
    /// A number for another holding: [`Wrote::Fence`], higher than every one before it and than that one.
    NextFence {
        /// Of which tenant.
        tenant: TenantId,
        /// The highest that is known from elsewhere.
        above: u64,
    },
    /// No holding may have that number any more, nor a lower one.
    RaiseFence {
        /// Of which tenant.
        tenant: TenantId,
        /// The number.
        to: u64,
    },
    /// The lock is taken if it is free, or held by the same task of the same instance with a lower fence, or by that holder. Otherwise [`Wrote::Held`].
    TakeLock {
        /// Of which tenant.
        tenant: TenantId,
        /// Who takes it.
        holder: LockHolder,
        /// For how long it is held without being renewed.
        lease: Duration,
        /// A holder that is gone.
        instead_of: Option<LockHolder>,
    },
    /// The lock is held for longer. [`Wrote::Missing`] if nobody has it, [`Wrote::Held`] if it is somebody else's.
    RenewLock {
        /// Of which tenant.
        tenant: TenantId,
        /// Who has it.
        holder: LockHolder,
        /// For how long.
        lease: Duration,
    },
    /// The lock is free again, if that task of that instance has it: with that fence, or with any.
    ReleaseLock {
        /// Of which tenant.
        tenant: TenantId,
        /// Who had it; a fence of 0 stands for any.
        holder: LockHolder,
    },
}

/// Which state of an entity something tells of: `MADE:SEQUENCE` as text. A later one has been made later, or has a higher sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AsOf {
    /// When the entity was made: after it was removed, another one may have its id.
    pub made: Timestamp,
    /// The sequence of the last entry of its journal.
    pub seq: Seq,
}

impl fmt::Display for AsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.made.as_micros(), self.seq)
    }
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Wrote {
    /// It is there.
    Done,
    /// It is there; that was there before.
    Before(Option<String>),
    /// The number.
    Fence(u64),
    /// Nothing is there that could be changed.
    Missing,
    /// Somebody else has the lock.
    Held(LockHolder),
    /// Somebody else owns it, or has come further.
    NotYours {
        /// Who, if it is known.
        owner: Option<InstanceId>,
        /// With which fence.
        fence: u64,
    },
    /// There is something in that place that none of us has put there. It is left alone.
    Foreign {
        /// Where.
        key: String,
    },
}

/// A field of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanField {
    /// Its id.
    PlanId,
    /// Its status.
    Status,
    /// The ids of its tasks, as a JSON array.
    TaskIds,
    /// How many tasks may be under way at once.
    MaxConcurrency,
    /// When it was created.
    CreatedAt,
    /// When it was started.
    StartedAt,
    /// The name of its definition.
    Definition,
    /// Which definition of that name.
    DefinitionHash,
    /// What its tasks are given, as JSON.
    Vars,
}

/// A field of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskField {
    /// Its id.
    TaskId,
    /// Whose it is.
    TenantId,
    /// Its plan.
    PlanId,
    /// Its status.
    Status,
    /// Somebody wants it to pause, or it has.
    PauseRequested,
    /// When it was made.
    CreatedAt,
    /// When it first began.
    StartedAt,
    /// The name of its plan's definition.
    Definition,
    /// Which definition of that name.
    DefinitionHash,
}

/// What is shared of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedPlan {
    /// Its id.
    pub plan: PlanId,
    /// Its status.
    pub status: PlanStatus,
    /// Its tasks, in order.
    pub tasks: Vec<RunId>,
    /// How many tasks may be under way at once.
    pub max_concurrency: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was started.
    pub started_at: Option<Timestamp>,
    /// The name of its definition.
    pub definition: String,
    /// Which definition of that name.
    pub definition_hash: String,
    /// What its tasks are given.
    pub vars: Payload,
    /// Whose it is.
    pub owner: InstanceId,
}

/// What is shared of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedTask {
    /// Its id.
    pub task: RunId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Its plan.
    pub plan: PlanId,
    /// Its status.
    pub status: TaskStatus,
    /// Somebody wants it to pause, or it has.
    pub pause_requested: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it first began.
    pub started_at: Option<Timestamp>,
    /// The name of its plan's definition.
    pub definition: String,
    /// Which definition of that name.
    pub definition_hash: String,
    /// Which instance goes on with it; nobody after a hand-over.
    pub owner: Option<InstanceId>,
    /// The fence of its last holding of the lock; 0 before the first.
    pub fence: u64,
}

/// What is shared of how far a task has come.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedCheckpoint {
    /// The last stage that is done, counted from 0.
    pub index: u32,
    /// The names of all that are done, in order.
    pub completed: Vec<String>,
    /// What they have left, as a JSON object.
    pub data: Payload,
    /// When it was saved.
    pub saved_at: Timestamp,
    /// Rises with every checkpoint of one owner.
    pub version: u64,
    /// The fence of the holding in which it was saved.
    pub fence: u64,
}

/// A lock that somebody has.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedLock {
    /// Of which tenant.
    pub tenant: TenantId,
    /// Who.
    pub holder: LockHolder,
    /// For how long, if it is not renewed.
    pub left: Duration,
}

/// Who has a lock: `PLAN:TASK:INSTANCE:FENCE` as text. None of the ids has a colon in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// The plan.
    pub plan: PlanId,
    /// The task.
    pub task: RunId,
    /// The instance.
    pub instance: InstanceId,
    /// The number of the holding.
    pub fence: u64,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LockHolder { plan, task, instance, fence } = self;
        write!(f, "{plan}:{task}:{instance}:{fence}")
    }
}

impl LockHolder {
    /// Reads the text; nothing if it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let holder = LockHolder {
            plan: PlanId::new(parts.next()?).ok()?,
            task: RunId::new(parts.next()?).ok()?,
            instance: InstanceId::new(parts.next()?).ok()?,
            fence: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(holder)
    }
}

/// Why the commons did not do what they were asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommonsError {
    /// They cannot be reached now.
    #[error("{why}")]
    Away {
        /// What was found, without secrets.
        why: String,
    },
    /// They can be reached and do not let us in, or are not what they should be: somebody has to mend that.
    #[error("{why}")]
    Refused {
        /// What was found, and what to do; without secrets.
        why: String,
    },
    /// There is something in that place that none of us has put there.
    #[error("{key} holds something else than it should")]
    Foreign {
        /// Where.
        key: String,
    },
}
