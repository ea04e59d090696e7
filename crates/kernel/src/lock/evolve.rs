//! How an entry changes a lock, and what it tells tasks. The same function runs live and at recovery.

use super::{Holder, Lock, LockEvent};
use crate::machine::{IllegalTransition, envelopes, illegal};
use crate::{EntityId, Entry, Envelope, Event, Lease, Message, Origin, TenantId};

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
    let free = || Lock { tenant: tenant.clone(), seq: 0, sent: 0, fence: 0, holder: None, line: Vec::new(), broken_by: None };
    let mut lock = lock.unwrap_or_else(free);
    if entry.seq != lock.seq + 1 {
        return Err(wrong("an event is missing"));
    }
    let Event::Lock(event) = &entry.event else { return Err(wrong("no such event can happen to a lock")) };
    change(&mut lock, entry, event).map_err(wrong)?;
    lock.seq = entry.seq;
    Ok(lock)
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
        LockEvent::Released { task, fence: None } => lock.line.retain(|waiter| waiter.task != *task),
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
