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
//!   held          --LoseLock----------> free   LOCK_LOST, LOCK_ACQUIRED by who is next
//! ```
//!
//! Where instances with stores of their own share the tenants, the commons say who has a lock, and the commands come as `Shared`. Then whoever is next only
//! stands in line, for the runtime to claim it there:
//!
//! ```text
//!   free, in line --SettleClaim, granted> held  LOCK_ACQUIRED with the fence of the commons | (not in line any more: no event)
//!   free, in line --SettleClaim, held---> free  (waits on) | (does not wait: LOCK_RELEASED, and it is told who has it)
//! ```
//!
//! Whoever stands in line behind another and does not wait is told, too, as soon as somebody has it: LOCK_RELEASED.
//!
//! First come, first served. The fence rises with every holding and outlives it, so that what an earlier holder says can be told from what the present one
//! says. A lease is renewed at a third of its time if its holder wants it; a holder that is gone does not, and the lock is free once the lease is over.
//!
//! A request that comes a second time changes nothing. A task may be out before its request is settled, because its lease was over, somebody broke the lock or it
//! gave back what it did not want: so requests are remembered beyond that, until the task says itself that it is out. Its next message comes only after the one before
//! it is settled, so that no more than the last request of each has to be known.
//!
//! Tested by `crates/sdk/tests/it/plans/locks.rs`.

mod event;
mod evolve;

pub use event::LockEvent;
pub use evolve::{advance, evolve};

use crate::machine::Decision;
use crate::{
    Answer, Claimed, Command, Effect, EntityId, Entry, Envelope, Epoch, Event, Heard, Lease, Message, Origin, PlanId, Refusal, RunId, Seq,
    SettleClaim, TenantId, Timer, TimerName, Timestamp,
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
    /// The last request of each task that may come again, in the order in which they were heard.
    pub requests: Vec<Request>,
}

/// A request that was heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The task.
    pub task: RunId,
    /// The place of the message in its outbox.
    pub message: u64,
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
    /// It waits if somebody else has it.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub waits: bool,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_yes(yes: &bool) -> bool {
    *yes
}

impl Lock {
    /// The holding, if it is somebody's now.
    pub fn held(&self) -> Option<&Lease> {
        self.holder.as_ref().map(|holder| &holder.lease)
    }

    /// Who is next, while nobody has it.
    pub fn wanted(&self) -> Option<&Waiter> {
        self.line.first().filter(|_| self.holder.is_none())
    }

    /// True if that message is a request that was heard before; what came back of something has no number.
    fn has_heard(&self, task: &RunId, message: u64) -> bool {
        message != 0 && self.requests.iter().any(|request| request.task == *task && request.message == message)
    }

    /// Those in line who do not wait for that holder.
    fn refused(&self, holder: &str) -> Vec<LockEvent> {
        let leave = self.line.iter().filter(|waiter| !waiter.waits).map(|waiter| waiter.task.clone());
        leave.map(|task| LockEvent::Released { task, fence: None, holder: Some(holder.into()) }).collect()
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
        Command::Shared(command) => of(tenant, lock, *command, now).map(|of| of.decision(&Free::Claimed)),
        Command::SettleClaim(_) | Command::BreakElsewhere { .. } => of(tenant, lock, command, now).map(|of| of.decision(&Free::Claimed)),
        command => of(tenant, lock, command, now).map(|of| of.decision(&Free::Given)),
    }
}

/// What becomes of a lock that is free while somebody stands in line.
enum Free {
    /// It is given to who is next.
    Given,
    /// The commons are asked, and say so later.
    Claimed,
}

/// What is to happen, before it is known who is next.
struct Of<'a> {
    tenant: &'a TenantId,
    lock: Option<&'a Lock>,
    now: Timestamp,
    heard: Option<Heard>,
    events: Vec<LockEvent>,
    effects: Vec<Effect>,
}

fn of<'a>(tenant: &'a TenantId, lock: Option<&'a Lock>, command: Command, now: Timestamp) -> Result<Of<'a>, Refusal> {
    let of = |events, effects| Of { tenant, lock, now, heard: None, events, effects };
    match command {
        Command::Hear(envelope) => {
            let heard = Heard { from: envelope.from.clone(), seq: envelope.seq };
            let (events, effects) = hear(tenant, lock, *envelope, now);
            Ok(Of { heard: (heard.seq != 0).then_some(heard), ..of(events, effects) })
        }
        Command::BreakLock(origin) => give_away(tenant, lock, origin).map(|events| of(events, vec![Effect::Answer(Answer::Broken)])),
        Command::BreakElsewhere { holder, origin } => {
            let is_done = origin.command.is_some() && lock.is_some_and(|lock| lock.broken_by == origin.command);
            let broken = (!is_done).then_some(LockEvent::BrokenElsewhere { holder, origin });
            Ok(of(broken.into_iter().collect(), vec![Effect::Answer(Answer::Broken)]))
        }
        Command::LoseLock { fence, origin } => {
            let lost = lock.and_then(Lock::held).filter(|lease| lease.fence == fence);
            let lost = lost.map(|_| LockEvent::Lost { fence, origin });
            Ok(of(lost.into_iter().collect(), vec![Effect::Answer(Answer::Heard)]))
        }
        Command::SettleClaim(claim) => {
            let (events, answer) = settle(lock, claim, now);
            Ok(of(events, vec![Effect::Answer(answer)]))
        }
        Command::FireTimer(fire) => {
            let (events, effects) = lock.map(|lock| fire_timer(lock, fire.revision, now)).unwrap_or_default();
            Ok(of(events, effects))
        }
        _ => Ok(of(Vec::new(), vec![Effect::Answer(Answer::Heard)])), // of other machines
    }
}

/// The commons say who has it.
fn settle(lock: Option<&Lock>, claim: SettleClaim, now: Timestamp) -> (Vec<LockEvent>, Answer) {
    let SettleClaim { task, asked, claimed } = claim;
    let first = lock.and_then(Lock::wanted).filter(|first| first.task == task && first.asked == asked);
    let (Some(lock), Some(first)) = (lock, first) else { return (Vec::new(), Answer::Superseded) };
    match claimed {
        Claimed::Granted { fence } => {
            let lease = first.holding(fence.unwrap_or(lock.fence + 1).max(lock.fence + 1), now);
            (vec![LockEvent::Acquired(lease)], Answer::Heard)
        }
        Claimed::Held { holder } => (lock.refused(&holder), Answer::Heard),
    }
}

impl Waiter {
    fn holding(&self, fence: u64, now: Timestamp) -> Lease {
        let Waiter { task, plan, epoch, lease, .. } = self.clone();
        Lease { plan, task, epoch, fence, lease, expires_at: now.saturating_add(lease) }
    }
}

/// Takes it away from its holder, because a person says so.
fn give_away(tenant: &TenantId, lock: Option<&Lock>, origin: Origin) -> Result<Vec<LockEvent>, Refusal> {
    let missing = || Refusal::LockNotFound { tenant: tenant.clone() };
    let lock = lock.ok_or_else(missing)?;
    if origin.command.is_some() && origin.command == lock.broken_by {
        return Ok(Vec::new());
    }
    let fence = lock.held().ok_or_else(missing)?.fence;
    Ok(vec![LockEvent::Broken { fence, origin }])
}

fn fire_timer(lock: &Lock, revision: Seq, now: Timestamp) -> (Vec<LockEvent>, Vec<Effect>) {
    let superseded = Effect::Answer(Answer::Superseded);
    let Some(holder) = lock.holder.as_ref().filter(|holder| holder.revision == revision) else { return (Vec::new(), vec![superseded]) };
    let Lease { task, fence, expires_at, .. } = &holder.lease;
    if *expires_at <= now {
        return (vec![LockEvent::Lost { fence: *fence, origin: Origin::default() }], vec![superseded]);
    }
    let me = EntityId::Lock(lock.tenant.clone());
    let message = Message::ConfirmLock { fence: *fence, seen: holder.seen };
    let ask = Envelope { from: me, seq: 0, to: task.into(), message };
    (Vec::new(), vec![Effect::Bounce(Box::new(ask))])
}

fn hear(tenant: &TenantId, lock: Option<&Lock>, envelope: Envelope, now: Timestamp) -> (Vec<LockEvent>, Vec<Effect>) {
    let Envelope { from, seq, message, .. } = envelope;
    let heard = vec![Effect::Answer(Answer::Heard)];
    let EntityId::Run(task) = &from else { return (Vec::new(), heard) };
    let holds = |lease: &&Lease| lease.task == *task;
    let held = lock.and_then(Lock::held);
    let events = match message {
        Message::AcquireLock { .. } if lock.is_some_and(|lock| lock.has_heard(task, seq)) => Vec::new(),
        Message::AcquireLock { epoch, asked, plan, lease, waits } => {
            let asks = Waiter { task: task.clone(), plan, epoch, asked, lease, waits };
            let is_over = lock.is_some_and(|lock| lock.is_over(now));
            match held.filter(|held| !is_over && held.task != *task) {
                Some(other) if !waits => {
                    let refused = Message::LockRefused { asked, holder: other.holder() };
                    let answer = Envelope { from: EntityId::Lock(tenant.clone()), seq: 0, to: from, message: refused };
                    return (Vec::new(), vec![Effect::Bounce(Box::new(answer))]);
                }
                Some(_) if lock.is_some_and(|lock| lock.line.contains(&asks)) => Vec::new(),
                _ => {
                    let over = held
                        .filter(|_| is_over)
                        .map(|held| LockEvent::Lost { fence: held.fence, origin: Origin::default() });
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
            let released = |lease: &Lease| LockEvent::Released { task: task.clone(), fence: Some(lease.fence), holder: None };
            let gone = || LockEvent::Released { task: task.clone(), fence: None, holder: None };
            lease.map(released).or_else(|| waits.then(gone)).into_iter().collect()
        }
        _ => Vec::new(),
    };
    (events, heard)
}

impl Of<'_> {
    /// What follows: these events, whoever has the lock after them, and its timer.
    fn decision(self, free: &Free) -> Decision {
        let Of { tenant, lock, now, heard, events, effects } = self;
        let (mut next, mut entries) = (lock.cloned(), Vec::new());
        let mut add = |next: &mut Option<Lock>, event: LockEvent| {
            let entry = Entry::new(next.as_ref().map_or(0, |lock| lock.seq) + 1, 1, now, Event::Lock(Box::new(event)));
            *next = evolve(tenant, next.take(), &entry).ok();
            entries.push(entry);
        };
        for event in events {
            add(&mut next, event);
        }
        let first = next.as_ref().and_then(|lock| Some(lock.wanted()?.holding(lock.fence + 1, now)));
        if let (Some(lease), Free::Given) = (first, free) {
            add(&mut next, LockEvent::Acquired(lease));
        }
        let held = next.as_ref().and_then(|lock| Some(lock.refused(&lock.held()?.holder())));
        held.unwrap_or_default().into_iter().for_each(|event| add(&mut next, event));
        let Some(first) = entries.first_mut() else { return Decision { entries, effects } };
        first.heard = heard;
        let armed = |lock: Option<&Lock>| lock.and_then(Lock::timer);
        let timer = match (armed(lock), armed(next.as_ref())) {
            (before, Some(timer)) if before.as_ref() != Some(&timer) => Some(Effect::Arm(timer)),
            (Some(_), None) => Some(Effect::Disarm(TimerName::Lease)),
            _ => None,
        };
        Decision { entries, effects: timer.into_iter().chain(effects).collect() }
    }
}
