//! What is known of a plan: the fold of its journal.

use super::{Cause, PlanCreated};
use crate::run::{Deadline, Verb};
use crate::{Conflict, Epoch, Failure, OnFailure, Origin, PlanId, RunId, Seq, TaskStatus, TenantId, Timer, TimerName, Timestamp, Wants};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How a plan goes about its tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// How many tasks may be under way at once.
    pub max_concurrency: u32,
    /// That many tasks come first; the others begin once they have completed.
    pub canary: u32,
    /// When no other task is to begin.
    pub stop_when: Option<StopWhen>,
    /// What it does about tenants that are locked.
    pub conflict: Conflict,
    /// What becomes of a tenant's lock if its task fails.
    pub on_failure: OnFailure,
    /// For how long a lock is a task's own without being renewed.
    pub lease: Duration,
    /// How long it may take, from its start, before it pauses.
    pub deadline: Option<Duration>,
}

impl Settings {
    /// How long a lock is a task's own without being renewed, unless it is said.
    pub const LEASE: Duration = Duration::from_secs(9_000);
    /// How many tasks may be under way at once, unless it is said.
    pub const MAX_CONCURRENCY: u32 = 5;
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            max_concurrency: Self::MAX_CONCURRENCY,
            canary: 0,
            stop_when: None,
            conflict: Conflict::default(),
            on_failure: OnFailure::default(),
            lease: Self::LEASE,
            deadline: None,
        }
    }
}

/// When no other task is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopWhen {
    /// Once that many have failed.
    Failed(u32),
    /// Once that part of all of them has failed, in percent.
    FailedPercent(u32),
}

/// The public status of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PlanStatus {
    /// Its tasks are being made.
    Created,
    /// It waits to be started.
    Ready,
    /// Its tasks are under way.
    Running,
    /// No other task begins until somebody resumes it.
    Paused,
    /// All tasks that were not called off are done.
    Completed,
    /// It has ended with tasks that have failed.
    Failed,
    /// It was called off.
    Cancelled,
}

impl PlanStatus {
    /// Every status.
    pub const ALL: [PlanStatus; 7] = [
        PlanStatus::Created,
        PlanStatus::Ready,
        PlanStatus::Running,
        PlanStatus::Paused,
        PlanStatus::Completed,
        PlanStatus::Failed,
        PlanStatus::Cancelled,
    ];

    /// The stored and public name.
    pub fn as_str(self) -> &'static str {
        match self {
            PlanStatus::Created => "CREATED",
            PlanStatus::Ready => "READY",
            PlanStatus::Running => "RUNNING",
            PlanStatus::Paused => "PAUSED",
            PlanStatus::Completed => "COMPLETED",
            PlanStatus::Failed => "FAILED",
            PlanStatus::Cancelled => "CANCELLED",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// True if nothing follows unless a person wants it.
    pub fn is_final(self) -> bool {
        matches!(self, PlanStatus::Completed | PlanStatus::Failed | PlanStatus::Cancelled)
    }
}

/// A plan: the fold of its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Its id.
    pub id: PlanId,
    /// The sequence of the last entry.
    pub seq: Seq,
    /// How many messages it has sent.
    pub sent: u64,
    /// As it was created.
    pub created: Arc<PlanCreated>,
    /// What all of its tasks are given, again: the state is saved without what the record keeps elsewhere.
    pub input: crate::Payload,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was first started.
    pub started_at: Option<Timestamp>,
    /// Where it stands.
    pub phase: Phase,
    /// Its tasks, in order. Every decision is tried on a copy of the state: most of it is shared.
    pub tasks: Vec<Arc<Task>>,
    /// Where a task stands among them.
    pub places: Arc<BTreeMap<RunId, usize>>,
    /// How many tasks there are of each status.
    pub counts: BTreeMap<TaskStatus, usize>,
    /// The tasks that wait for their turn.
    pub waiting: BTreeSet<usize>,
    /// Those of them that a person wants to begin.
    pub asked: BTreeSet<usize>,
    /// The tasks that were let begin and have not ended.
    pub admitted: BTreeSet<usize>,
    /// The tasks that have not said anything since they were made, or since something was wanted of all of them.
    pub silent: BTreeSet<usize>,
    /// How many tasks had failed when it was last resumed: a person knows of those.
    pub forgiven: usize,
    /// When it pauses by itself.
    pub deadline: Option<Deadline>,
    /// The commands with an id that were carried out.
    pub commands: BTreeSet<(Verb, String)>,
    /// What instances share cannot be reached.
    #[serde(default)]
    pub degraded: bool,
}

/// Where a plan stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Phase {
    /// It was not started yet.
    New,
    /// Tasks begin.
    Running,
    /// No other task begins.
    Paused {
        /// What for.
        cause: Cause,
        /// Who wants it, and why; what was found, if it was nobody.
        origin: Origin,
        /// Since when.
        since: Timestamp,
    },
    /// All tasks are to end.
    Ending {
        /// And what they did is being undone.
        undo: bool,
    },
    /// It has ended.
    Ended {
        /// How.
        status: PlanStatus,
        /// When.
        at: Timestamp,
        /// Why, if it has failed.
        failure: Option<Failure>,
    },
}

/// What a plan knows of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Whose it is.
    pub tenant: TenantId,
    /// The run that it is.
    pub run: RunId,
    /// Where it stood when it last said so.
    pub status: TaskStatus,
    /// Which of its lives.
    pub epoch: Epoch,
    /// It has begun since it was let.
    pub begun: bool,
    /// The last message of it that was heard.
    pub heard: u64,
    /// What it last wanted.
    pub wants: Wants,
    /// The last message to it that it has to answer: until it has heard that, what it says is older.
    pub told: u64,
}

impl Plan {
    /// The public status.
    pub fn status(&self) -> PlanStatus {
        match &self.phase {
            Phase::New if !self.silent.is_empty() => PlanStatus::Created,
            Phase::New => PlanStatus::Ready,
            Phase::Running | Phase::Ending { .. } => PlanStatus::Running,
            Phase::Paused { .. } => PlanStatus::Paused,
            Phase::Ended { status, .. } => *status,
        }
    }

    /// Its messages are numbered on from the time of its creation, as those of a run are.
    pub(super) fn numbered_from(&self) -> u64 {
        u64::try_from(self.created_at.as_micros()).unwrap_or_default()
    }

    /// How many tasks there are of a status.
    pub fn count(&self, status: TaskStatus) -> usize {
        self.counts.get(&status).copied().unwrap_or_default()
    }

    /// How many tasks have failed.
    pub fn failed(&self) -> usize {
        self.count(TaskStatus::Failed) + self.count(TaskStatus::RollbackFailed)
    }

    pub(super) fn task(&self, run: &RunId) -> Option<(usize, &Task)> {
        let place = *self.places.get(run)?;
        Some((place, self.tasks.get(place)?))
    }

    /// True if a restart has to pause it: something of it would begin by itself.
    pub fn is_under_way(&self) -> bool {
        match self.phase {
            Phase::Running | Phase::Ending { undo: true } => true,
            Phase::Paused { .. } => !self.asked.is_empty(),
            Phase::New | Phase::Ending { undo: false } | Phase::Ended { .. } => false,
        }
    }

    /// The timers that must be armed.
    pub fn timers(&self) -> Option<Timer> {
        let deadline = self.deadline.filter(|_| self.phase == Phase::Running)?;
        let entity = crate::EntityId::Plan(self.id.clone());
        Some(Timer { entity, name: TimerName::Deadline, due: deadline.at, revision: deadline.revision })
    }

    pub(super) fn has_done(&self, verb: Verb, origin: &Origin) -> bool {
        origin.command.as_ref().is_some_and(|id| self.commands.contains(&(verb, id.clone())))
    }
}
