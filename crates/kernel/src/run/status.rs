//! What can be seen of a run: its status, what it waits for, its timers. All of it is derived.

use super::{Ended, Open, Phase, Run, Stage, Step};
use crate::{Recovery, Timer, TimerName, Timestamp, Wait};

/// The public status of a run, derived from its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum Status {
    /// It waits for a slot before it begins.
    Ready,
    /// Work is under way.
    Running,
    /// Nothing moves until something named happens.
    Waiting,
    /// Nothing new is begun until somebody resumes it.
    Paused,
    /// What it did is being undone.
    Compensating,
    /// Its process died, and a person decides.
    Interrupted,
    /// Over, with a result.
    Completed,
    /// Over, with a failure.
    Failed,
    /// Over: it was called off.
    Cancelled,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 9] = [
        Status::Ready,
        Status::Running,
        Status::Waiting,
        Status::Paused,
        Status::Compensating,
        Status::Interrupted,
        Status::Completed,
        Status::Failed,
        Status::Cancelled,
    ];

    /// The stored and public name.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Ready => "READY",
            Status::Running => "RUNNING",
            Status::Waiting => "WAITING",
            Status::Paused => "PAUSED",
            Status::Compensating => "COMPENSATING",
            Status::Interrupted => "INTERRUPTED",
            Status::Completed => "COMPLETED",
            Status::Failed => "FAILED",
            Status::Cancelled => "CANCELLED",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<Status> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// True if nothing follows in this epoch.
    pub fn is_final(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Cancelled)
    }
}

/// What a restart has to do with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recover {
    /// Host it: it was under way.
    Host,
    /// Record that it is interrupted: it was under way, or a task about to be, and does not go on by itself.
    Interrupt,
}

impl Recover {
    /// The stored name.
    pub fn as_str(self) -> &'static str {
        match self {
            Recover::Host => "host",
            Recover::Interrupt => "interrupt",
        }
    }

    /// What is stored under that name.
    pub fn parse(name: &str) -> Option<Recover> {
        [Recover::Host, Recover::Interrupt].into_iter().find(|recover| recover.as_str() == name)
    }
}

impl Run {
    /// The public status.
    pub fn status(&self) -> Status {
        match &self.phase {
            Phase::Open(Open { interrupted: Some(_), .. }) => Status::Interrupted,
            Phase::Open(Open { paused: Some(_), .. }) => Status::Paused,
            Phase::Open(Open { stage: Stage::Compensating { .. }, .. }) => Status::Compensating,
            Phase::Open(_) if self.is_ready() => Status::Ready,
            Phase::Open(_) if self.is_waiting() => Status::Waiting,
            Phase::Open(_) => Status::Running,
            Phase::Ended(Ended { outcome: Ok(_), .. }, _) => Status::Completed,
            Phase::Ended(Ended { cancelled: true, .. }, _) => Status::Cancelled,
            Phase::Ended(Ended { outcome: Err(_), .. }, _) => Status::Failed,
        }
    }

    /// True if nothing moves until something named happens: such a run need not be hosted.
    pub fn is_waiting(&self) -> bool {
        let Some(open) = self.open() else { return false };
        let still = open.paused.is_some() || self.is_ready() || (open.in_flight == 0 && !open.has_news());
        still && open.interrupted.is_none() && !self.waits().is_empty()
    }

    /// What a restart has to do with it, if anything.
    pub fn recover(&self) -> Option<Recover> {
        if self.is_let_begin() {
            return Some(Recover::Interrupt);
        }
        let open = self.open().filter(|open| open.interrupted.is_none() && !self.is_ready())?;
        let in_backoff = open.steps.values().any(|step| matches!(step, Step::Backoff { .. }));
        let is_called_off = open.cancel_requested && open.stage == Stage::Running; // a person has decided: it goes on to its end
        match self.options.recovery {
            Recovery::Manual if !is_called_off && (in_backoff && open.paused.is_none() || open.in_flight > 0) => Some(Recover::Interrupt),
            _ if self.is_waiting() => None,
            _ => Some(Recover::Host),
        }
    }

    /// What it waits for: what a person has to see to first, then what ends first.
    pub fn waits(&self) -> Vec<Wait> {
        let Some(open) = self.open() else { return Vec::new() };
        let paused = open.paused.as_ref().map(|paused| {
            let (by, why) = (paused.origin.by.clone(), paused.origin.why.clone());
            Wait::Paused { by, why, since: paused.at }
        });
        let slot = self.wanted().filter(|_| self.is_ready()).map(|key| Wait::Slot { key: key.clone(), position: None });
        let turn = self
            .task_options()
            .filter(|_| self.is_held_back())
            .map(|options| match self.task().is_some_and(|task| task.admitted) {
                true => Wait::Lock { tenant: options.tenant.clone(), holder: None },
                false => Wait::Plan { plan: options.plan.clone() },
            });
        let backoffs = open.steps.iter().filter_map(|(step, state)| match state {
            Step::Backoff { attempt, of, due_at, failure, .. } => {
                Some(Wait::Backoff { step: step.clone(), attempt: *attempt, of: *of, due_at: *due_at, failure: failure.clone() })
            }
            Step::Started { .. } | Step::Done { .. } => None,
        });
        let sleeps = open
            .sleeps
            .values()
            .filter(|sleep| sleep.fired.is_none())
            .map(|sleep| Wait::Timer { due_at: sleep.due_at });
        let awaits = open.open_awaits().map(|(wait, signal)| match wait.doubted() {
            Some(step) => Wait::InDoubt { attempt: open.attempt_to_come(&step).unwrap_or(1), step },
            None => match &signal.approval {
                Some(roles) => Wait::Approval { name: signal.name.clone(), roles: roles.clone(), until: signal.until },
                None => Wait::Signal { name: signal.name.clone(), until: signal.until },
            },
        });
        let running = open.stage == Stage::Running;
        let children = open.open_children().filter(|(_, child)| running && child.taken.is_none());
        let children = children.map(|(_, child)| Wait::Child { run: child.run.clone() });
        let mut waits: Vec<Wait> = backoffs.chain(sleeps).chain(awaits).chain(children).collect();
        waits.sort_by_key(|wait| wait.due_at().unwrap_or(Timestamp::MAX));
        paused.into_iter().chain(slot).chain(turn).chain(waits).collect()
    }

    /// The timers that must be armed: what the timer rows of this run are a fold of. While it is paused or interrupted its time stands still, and
    /// what its code waits for is of no use to a run that waits for a slot.
    pub fn timers(&self) -> Vec<Timer> {
        let Some(open) = self.open().filter(|open| !open.stands_still()) else { return Vec::new() };
        let timer = |name, due, revision| Timer { entity: self.id.clone().into(), name, due, revision };
        let deadline = self.deadline.filter(|_| open.stage == Stage::Running);
        let deadline = deadline.map(|deadline| timer(TimerName::Deadline, deadline.at, deadline.revision));
        if self.is_ready() {
            return deadline.into_iter().collect();
        }
        let retries = open.steps.iter().filter_map(|(step, state)| match state {
            Step::Backoff { due_at, revision, .. } => Some(timer(TimerName::Retry(step.clone()), *due_at, *revision)),
            Step::Started { .. } | Step::Done { .. } => None,
        });
        let pending = open.sleeps.iter().filter(|(_, sleep)| sleep.fired.is_none());
        let sleeps = pending.map(|(id, sleep)| timer(TimerName::Sleep(id.clone()), sleep.due_at, sleep.revision));
        let awaits = open
            .open_awaits()
            .filter_map(|(wait, signal)| signal.until.map(|until| timer(TimerName::Sleep(wait.clone()), until, signal.revision)));
        retries.chain(sleeps).chain(awaits).chain(deadline).collect()
    }

    /// When the code must be over, seen from now: while the run's time stands still, that moves on with the time of the world. What the code did may
    /// be undone after it.
    pub(super) fn deadline_seen_from(&self, now: Timestamp) -> Option<Timestamp> {
        let open = self.open().filter(|open| open.stage == Stage::Running)?;
        let deadline = self.deadline?;
        let still = open.still_since().map(|since| now.saturating_since(since));
        Some(deadline.at.saturating_add(still.unwrap_or_default()))
    }
}

impl Open {
    /// True if no timer of the run may fire.
    pub fn stands_still(&self) -> bool {
        self.still_since().is_some()
    }

    /// Since when the run's own time stands still.
    pub(super) fn still_since(&self) -> Option<Timestamp> {
        let paused = self.paused.as_ref().map(|paused| paused.at);
        paused.or(self.interrupted) // a run that is interrupted cannot be paused any more
    }
}
