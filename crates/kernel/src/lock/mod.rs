//! The lock machine: one holder per tenant, over all plans, and a line of tasks that wait for it.
//!
//! ```text
//!   free          --AcquireLock-------> held   LOCK_ACQUIRED
//!   held by other --AcquireLock, waits> held   LOCK_REQUESTED | (does not wait: told who has it, no event)
//!   held          --RenewLock---------> held   LOCK_RENEWED | (not the holder, or another fence: no event)
//!   held          --DenyLock----------> held   LOCK_SUSPECTED | (likewise: no event)
//!   held          --ReleaseLock-------> free   LOCK_RELEASED, LOCK_ACQUIRED by who is next | (not the holder: no event)
//!   held          --FireTimer---------> held   (the holder is asked whether it is to be renewed: no event)
//!   held          --FireTimer, over---> free   LOCK_LOST, LOCK_ACQUIRED by who is next
//!   held          --BreakLock---------> free   LOCK_BROKEN, LOCK_ACQUIRED by who is next
//! ```
//!
//! First come, first served. The fence rises with every holding and outlives it, so that what an earlier holder says can be told from what the present one
//! says. A lease is renewed at a third of its time if its holder wants it; a holder that is gone does not, and the lock is free once the lease is over.

mod event;
mod evolve;

pub use event::LockEvent;
pub use evolve::{advance, evolve};

use crate::machine::Decision;
use crate::{
    Answer, Command, Effect, EntityId, Entry, Envelope, Epoch, Event, Heard, Lease, Message, Origin, PlanId, Refusal, RunId, Seq, TenantId,
    Timer, TimerName, Timestamp,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A lock: the fold of its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lock {
    /// Whose it is.
    pub tenant: TenantId,
    /// The sequence of the last entry.
    pub seq: Seq,
    /// How many messages it has sent.
    pub sent: u64,
    /// The fence of the last holding.
    pub fence: u64,
    /// Who has it.
    pub holder: Option<Holder>,
    /// Who waits for it, in order.
    pub line: Vec<Waiter>,
    /// The last command that broke it: the same again is one.
    pub broken_by: Option<String>,
}

/// Who has a lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// The holding.
    pub lease: Lease,
    /// Since when.
    pub since: Timestamp,
    /// When it was taken, or its holder was last asked whether it is to be renewed.
    pub asked_at: Timestamp,
    /// The sequence of the event that says so.
    pub revision: Seq,
    /// How far the task had come then.
    pub seen: Seq,
}

/// Who waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiter {
    /// The task.
    pub task: RunId,
    /// Its plan.
    pub plan: PlanId,
    /// The epoch in which it asked.
    pub epoch: Epoch,
    /// The sequence of the event by which it asked: it may ask again in the same epoch.
    pub asked: Seq,
    /// For how long it is to hold without being renewed.
    pub lease: Duration,
}

impl Lock {
    /// The holding, if it is somebody's now.
    pub fn held(&self) -> Option<&Lease> {
        self.holder.as_ref().map(|holder| &holder.lease)
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.held().is_some_and(|lease| lease.expires_at <= now)
    }

    /// When the holder is asked whether it is to be renewed, or the holding is over.
    pub fn timer(&self) -> Option<Timer> {
        let holder = self.holder.as_ref()?;
        let due = holder.asked_at.saturating_add(holder.lease.lease / 3).min(holder.lease.expires_at);
        Some(Timer { entity: EntityId::Lock(self.tenant.clone()), name: TimerName::Lease, due, revision: holder.revision })
    }
}

/// Decides on a command.
///
/// # Errors
/// A [`Refusal`] leaves no trace.
pub fn decide(tenant: &TenantId, lock: Option<&Lock>, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
    match command {
        Command::Hear(envelope) => Ok(hear(tenant, lock, *envelope, now)),
        Command::BreakLock(origin) => give_away(tenant, lock, origin, now),
        Command::FireTimer(fire) => Ok(lock.map_or_else(Decision::default, |lock| fire_timer(lock, fire.revision, now))),
        _ => Ok(Decision::answer(Answer::Heard)), // of other machines
    }
}

/// Takes it away from its holder, because a person says so.
fn give_away(tenant: &TenantId, lock: Option<&Lock>, origin: Origin, now: Timestamp) -> Result<Decision, Refusal> {
    let missing = || Refusal::LockNotFound { tenant: tenant.clone() };
    let lock = lock.ok_or_else(missing)?;
    if origin.command.is_some() && origin.command == lock.broken_by {
        return Ok(Decision::answer(Answer::Broken));
    }
    let fence = lock.held().ok_or_else(missing)?.fence;
    let entries = follow_up(tenant, Some(lock), vec![LockEvent::Broken { fence, origin }], now);
    Ok(decision(tenant, Some(lock), entries, Answer::Broken))
}

fn fire_timer(lock: &Lock, revision: Seq, now: Timestamp) -> Decision {
    let Some(holder) = lock.holder.as_ref().filter(|holder| holder.revision == revision) else {
        return Decision::answer(Answer::Superseded);
    };
    let Lease { task, fence, expires_at, .. } = &holder.lease;
    if *expires_at <= now {
        let entries = follow_up(&lock.tenant, Some(lock), vec![LockEvent::Lost { fence: *fence }], now);
        return decision(&lock.tenant, Some(lock), entries, Answer::Superseded);
    }
    let me = EntityId::Lock(lock.tenant.clone());
    let message = Message::ConfirmLock { fence: *fence, seen: holder.seen };
    let ask = Envelope { from: me, seq: 0, to: task.into(), message };
    Decision { entries: Vec::new(), effects: vec![Effect::Bounce(Box::new(ask))] }
}

fn hear(tenant: &TenantId, lock: Option<&Lock>, envelope: Envelope, now: Timestamp) -> Decision {
    let Envelope { from, seq, message, .. } = envelope;
    let EntityId::Run(task) = &from else { return Decision::answer(Answer::Heard) };
    let holds = |lease: &&Lease| lease.task == *task;
    let held = lock.and_then(Lock::held);
    let events = match message {
        Message::AcquireLock { epoch, asked, plan, lease, waits } => {
            let asks = Waiter { task: task.clone(), plan, epoch, asked, lease };
            let is_over = lock.is_some_and(|lock| lock.is_over(now));
            match held.filter(|held| !is_over && held.task != *task) {
                Some(other) if !waits => {
                    let refused = Message::LockRefused { asked, holder: other.holder() };
                    let answer = Envelope { from: EntityId::Lock(tenant.clone()), seq: 0, to: from, message: refused };
                    return Decision { entries: Vec::new(), effects: vec![Effect::Bounce(Box::new(answer))] };
                }
                Some(_) if lock.is_some_and(|lock| lock.line.contains(&asks)) => Vec::new(),
                _ => {
                    let over = held.filter(|_| is_over).map(|held| LockEvent::Lost { fence: held.fence });
                    over.into_iter().chain([LockEvent::Requested(asks)]).collect()
                }
            }
        }
        Message::RenewLock { fence, seen } => {
            let lease = held.filter(holds).filter(|lease| lease.fence == fence && lease.expires_at > now);
            let renewed = |lease: &Lease| LockEvent::Renewed { fence, expires_at: now.saturating_add(lease.lease), seen };
            lease.map(renewed).into_iter().collect()
        }
        Message::DenyLock { fence } => held
            .filter(holds)
            .filter(|lease| lease.fence == fence)
            .map(|_| LockEvent::Suspected { fence })
            .into_iter()
            .collect(),
        Message::ReleaseLock { fence } => {
            let lease = held.filter(holds).filter(|lease| fence.is_none_or(|fence| fence == lease.fence));
            let waits = fence.is_none() && lock.is_some_and(|lock| lock.line.iter().any(|waiter| waiter.task == *task));
            let released = |lease: &Lease| LockEvent::Released { task: task.clone(), fence: Some(lease.fence) };
            let gone = || LockEvent::Released { task: task.clone(), fence: None };
            lease.map(released).or_else(|| waits.then(gone)).into_iter().collect()
        }
        _ => Vec::new(),
    };
    let mut entries = follow_up(tenant, lock, events, now);
    if let Some(first) = entries.first_mut()
        && seq != 0
    {
        first.heard = Some(Heard { from: from.clone(), seq });
    }
    decision(tenant, lock, entries, Answer::Heard)
}

/// The entries of these events, and of whoever has the lock after them.
fn follow_up(tenant: &TenantId, lock: Option<&Lock>, events: Vec<LockEvent>, now: Timestamp) -> Vec<Entry> {
    let (mut next, mut entries) = (lock.cloned(), Vec::new());
    let mut add = |next: &mut Option<Lock>, event: LockEvent| {
        let entry = Entry::new(next.as_ref().map_or(0, |lock| lock.seq) + 1, 1, now, Event::Lock(Box::new(event)));
        *next = evolve(tenant, next.take(), &entry).ok();
        entries.push(entry);
    };
    for event in events {
        add(&mut next, event);
    }
    let first = next
        .as_ref()
        .filter(|lock| lock.holder.is_none())
        .and_then(|lock| Some((lock.fence, lock.line.first()?.clone())));
    if let Some((fence, Waiter { task, plan, epoch, lease, .. })) = first {
        let lease = Lease { plan, task, epoch, fence: fence + 1, lease, expires_at: now.saturating_add(lease) };
        add(&mut next, LockEvent::Acquired(lease));
    }
    entries
}

/// What follows from these entries: the timer of who has the lock now.
fn decision(tenant: &TenantId, lock: Option<&Lock>, entries: Vec<Entry>, answer: Answer) -> Decision {
    if entries.is_empty() {
        return Decision::answer(answer);
    }
    let next = entries.iter().fold(lock.cloned(), |lock, entry| evolve(tenant, lock, entry).ok());
    let armed = |lock: Option<&Lock>| lock.and_then(Lock::timer);
    let timer = match (armed(lock), armed(next.as_ref())) {
        (before, Some(timer)) if before.as_ref() != Some(&timer) => Some(Effect::Arm(timer)),
        (Some(_), None) => Some(Effect::Disarm(TimerName::Lease)),
        _ => None,
    };
    Decision { entries, effects: timer.into_iter().chain([Effect::Answer(answer)]).collect() }
}
