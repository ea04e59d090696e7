//! How an entry changes a lock, and what it tells tasks. The same function runs live and at recovery.

use super::{Holder, Lock, LockEvent, Request, Waiter};
use crate::machine::{IllegalTransition, envelopes, illegal};
use crate::{EntityId, Entry, Envelope, Event, Heard, Lease, Message, Origin, RunId, TenantId};

/// So many requests are remembered of tasks that neither have the lock nor wait for it. A task that has lost its lock and is called off never says that it is
/// out, so there has to be an end; each of them stands for a lease that was over or was broken, and a request is settled long before there are so many.
const REMEMBERED: usize = 64;

/// Folds one entry into the state, and tells what it says to tasks.
///
/// # Errors
/// [`IllegalTransition`] if the entry cannot come next.
pub fn advance(tenant: &TenantId, lock: Option<Lock>, entry: &Entry) -> Result<(Lock, Vec<Envelope>), IllegalTransition> {
    let sent = lock.as_ref().map_or(0, |lock| lock.sent);
    let said = envelopes(&EntityId::Lock(tenant.clone()), sent, said(lock.as_ref(), entry));
    let mut lock = evolve(tenant, lock, entry)?;
    lock.sent += said.len() as u64;
    Ok((lock, said))
}

fn said(lock: Option<&Lock>, entry: &Entry) -> Vec<(EntityId, Message)> {
    let Event::Lock(event) = &entry.event else { return Vec::new() };
    let lost = |fence: u64, origin: &Origin| {
        let holder = lock.and_then(Lock::held).map(|lease| EntityId::from(&lease.task));
        holder.map(|task| (task, Message::LockLost { fence, origin: origin.clone() })).into_iter().collect()
    };
    match &**event {
        LockEvent::Acquired(lease) => {
            let asked = lock.and_then(|lock| lock.line.first()).map_or(0, |first| first.asked);
            vec![((&lease.task).into(), Message::LockGranted { lease: Box::new(lease.clone()), asked })]
        }
        LockEvent::Lost { fence, origin } | LockEvent::Broken { fence, origin } => lost(*fence, origin),
        LockEvent::Released { task, fence: None, holder: Some(holder) } => {
            let waiter = lock.and_then(|lock| lock.line.iter().find(|waiter| waiter.task == *task));
            let refused = |waiter: &Waiter| (task.into(), Message::LockRefused { asked: waiter.asked, holder: holder.clone() });
            waiter.map(refused).into_iter().collect()
        }
        LockEvent::Requested(_)
        | LockEvent::Renewed { .. }
        | LockEvent::Suspected { .. }
        | LockEvent::Released { .. }
        | LockEvent::BrokenElsewhere { .. } => Vec::new(),
    }
}

/// Folds one entry into the state.
///
/// # Errors
/// [`IllegalTransition`] if the entry cannot come next.
pub fn evolve(tenant: &TenantId, lock: Option<Lock>, entry: &Entry) -> Result<Lock, IllegalTransition> {
    let wrong = |why: &str| illegal(&EntityId::Lock(tenant.clone()), entry, why);
    let mut lock = lock.unwrap_or_else(|| free(tenant));
    if entry.seq != lock.seq + 1 {
        return Err(wrong("an event is missing"));
    }
    let Event::Lock(event) = &entry.event else { return Err(wrong("no such event can happen to a lock")) };
    change(&mut lock, entry, event).map_err(wrong)?;
    remember(&mut lock, entry, event);
    forget(&mut lock);
    lock.seq = entry.seq;
    Ok(lock)
}

fn free(tenant: &TenantId) -> Lock {
    let (line, requests) = Default::default();
    Lock { tenant: tenant.clone(), seq: 0, sent: 0, fence: 0, holder: None, line, broken_by: None, requests }
}

/// A message of a task is a request, unless by it the task is out. Who leaves the line has said so itself, or was refused and is told.
fn remember(lock: &mut Lock, entry: &Entry, event: &LockEvent) {
    let said = entry.heard.as_ref().and_then(|Heard { from, seq }| Some((from.run()?, *seq)));
    match (event, said) {
        (LockEvent::Released { task, fence: None, holder: None }, _) | (LockEvent::Released { task, .. }, Some(_)) => {
            drop_request(lock, task)
        }
        (_, Some((task, message))) => {
            drop_request(lock, task);
            lock.requests.push(Request { task: task.clone(), message });
        }
        (_, None) => {}
    }
}

fn drop_request(lock: &mut Lock, task: &RunId) {
    lock.requests.retain(|request| request.task != *task);
}

/// Of the tasks that are out, the oldest requests are not known any more if there are too many.
fn forget(lock: &mut Lock) {
    let most = lock.line.len() + usize::from(lock.holder.is_some()) + REMEMBERED;
    while lock.requests.len() > most
        && let Some(oldest) = lock.requests.iter().position(|request| is_out(lock, &request.task))
    {
        lock.requests.remove(oldest);
    }
}

fn is_out(lock: &Lock, task: &RunId) -> bool {
    lock.held().is_none_or(|lease| lease.task != *task) && lock.line.iter().all(|waiter| waiter.task != *task)
}

fn change(lock: &mut Lock, entry: &Entry, event: &LockEvent) -> Result<(), &'static str> {
    let is_held = |lock: &Lock, fence: u64| lock.held().is_some_and(|lease| lease.fence == fence);
    match event {
        LockEvent::Requested(waiter) => {
            lock.line.retain(|other| other.task != waiter.task); // what was asked for last counts
            if lock.held().is_some_and(|lease| lease.task == waiter.task) {
                lock.holder = None; // it takes it anew
                lock.line.insert(0, waiter.clone());
            } else {
                lock.line.push(waiter.clone());
            }
        }
        LockEvent::Acquired(lease) => {
            let is_next = lock.holder.is_none() && lock.line.first().is_some_and(|first| first.task == lease.task);
            if !is_next || lease.fence <= lock.fence {
                return Err("it is not the task's turn");
            }
            lock.line.remove(0);
            lock.fence = lease.fence;
            lock.holder = Some(Holder { lease: lease.clone(), since: entry.at, asked_at: entry.at, revision: entry.seq, seen: 0 });
        }
        LockEvent::Renewed { fence, expires_at, seen } => {
            let holder = lock.holder.as_mut().filter(|holder| holder.lease.fence == *fence).ok_or("it is not held")?;
            let Lease { expires_at: until, .. } = &mut holder.lease;
            (*until, holder.asked_at, holder.revision, holder.seen) = (*expires_at, entry.at, entry.seq, *seen);
        }
        LockEvent::Suspected { fence } => {
            let holder = lock.holder.as_mut().filter(|holder| holder.lease.fence == *fence).ok_or("it is not held")?;
            (holder.asked_at, holder.revision) = (entry.at, entry.seq);
        }
        LockEvent::Released { fence: Some(fence), .. } if is_held(lock, *fence) => lock.holder = None,
        LockEvent::Released { fence: Some(_), .. } => return Err("it is not held"),
        LockEvent::Released { task, fence: None, .. } => lock.line.retain(|waiter| waiter.task != *task),
        LockEvent::Lost { fence, .. } | LockEvent::Broken { fence, .. } if !is_held(lock, *fence) => return Err("it is not held"),
        LockEvent::Lost { .. } => lock.holder = None,
        LockEvent::BrokenElsewhere { origin, .. } => lock.broken_by.clone_from(&origin.command),
        LockEvent::Broken { origin, .. } => {
            lock.holder = None;
            lock.broken_by.clone_from(&origin.command);
        }
    }
    Ok(())
}
