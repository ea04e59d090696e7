//! Locks as this instance wants them to be and as the commons have them: what has to be asked for, renewed and given back.
//!
//! Tested by `crates/sdk/tests/it/instances/doubt.rs`.
//! Tested by `crates/sdk/tests/it/instances/locks.rs`.
//! Tested by `crates/sdk/tests/it/instances/races.rs`.

use super::image::LockImage;
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_kernel::{InstanceId, Lease, Seq, TenantId, Timestamp, lock::Waiter};
use steadfast_store::{LockHolder, SharedLock, Write, Wrote};

/// How soon it is asked again for a lock that somebody else has: first, and at the latest.
pub(super) const POLL: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// The locks that this instance has, wants or gives back.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    places: BTreeMap<TenantId, Place>,
}

#[derive(Debug, Default)]
struct Place {
    seq: Seq,
    /// Who has it here.
    holder: Option<Lease>,
    /// The number of the last holding that is known here.
    fence: u64,
    /// As whose the commons know it, if that is one of ours.
    held: Option<LockHolder>,
    /// The commons have to be told that it is held.
    assert: bool,
    /// It was granted while they were away, and they have not heard of it yet.
    local: bool,
    /// The answer to a claim of the holder was lost: it may be there under another number.
    ghost: bool,
    claim: Option<Claim>,
    /// Holdings that are over.
    release: Vec<LockHolder>,
}

/// A task wants a lock.
#[derive(Clone, Debug)]
struct Claim {
    waiter: Waiter,
    /// When to ask, and how long to wait after that.
    at: Timestamp,
    pause: Duration,
    /// Who had it when it was last asked for.
    held_by: Option<String>,
    /// It was asked for, and the answer was lost.
    in_doubt: bool,
    /// It was granted, and that is being put on record.
    granted: bool,
}

/// What a write was about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum About {
    Release(TenantId, LockHolder),
    Renew(TenantId, LockHolder, Duration),
    Number(TenantId, Waiter),
    Take(TenantId, Waiter, LockHolder),
}

/// What has to be done after a write.
#[derive(Debug, PartialEq)]
pub(crate) enum Then {
    Nothing,
    /// Take the lock with that number.
    Take(About, Write),
    /// The lock is the task's.
    Granted(TenantId, Waiter, Option<u64>),
    /// Somebody else has it.
    Held(TenantId, Waiter, String),
    /// A holding of ours is not what the commons know: nobody has it there, or somebody else.
    Contested(TenantId, LockHolder, Duration, Option<LockHolder>),
    /// Something else is there.
    Foreign(String),
}

impl Locks {
    /// A lock has changed here.
    pub(crate) fn put(&mut self, me: &InstanceId, image: LockImage, now: Timestamp) {
        let LockImage { seq, tenant, holder, wanted, fence } = image;
        let place = self.places.entry(tenant.clone()).or_default();
        if place.seq >= seq && place.seq > 0 {
            return;
        }
        let is_as_before = place.holder == holder;
        place.end(me, holder.as_ref());
        match (&wanted, &place.claim) {
            (Some(waiter), Some(claim)) if claim.waiter == *waiter => {}
            _ => {
                place.leave(me, holder.as_ref());
                place.claim = wanted.map(|waiter| Claim { waiter, at: now, pause: POLL.0, held_by: None, in_doubt: false, granted: false });
            }
        }
        // It was granted, on record and over again before anybody was told.
        let is_over = |held: &mut LockHolder| fence >= held.fence && holder.as_ref().is_none_or(|lease| lease.fence != held.fence);
        place.release.extend(place.held.take_if(is_over));
        place.assert |= holder.is_some() && !is_as_before;
        if let (Some(lease), Some(held)) = (&holder, &place.held)
            && lease.fence == held.fence
            && place.holder.is_none()
        {
            place.assert = false; // it was granted just now
        }
        (place.seq, place.holder, place.fence) = (seq, holder, fence.max(place.fence));
        self.tidy(&tenant);
    }

    /// Nobody here wanted that holding any more when it was granted.
    pub(crate) fn unwanted(&mut self, tenant: &TenantId, holder: LockHolder) {
        let place = self.places.entry(tenant.clone()).or_default();
        if place.held.as_ref() == Some(&holder) && place.holder.is_none() {
            place.held = None;
            place.release.push(holder);
        }
    }

    /// An earlier life of this instance has left that there.
    pub(crate) fn left_over(&mut self, tenant: &TenantId, holder: LockHolder) {
        let place = self.places.entry(tenant.clone()).or_default();
        if place.holder.as_ref().is_none_or(|lease| lease.fence != holder.fence) && place.held.as_ref() != Some(&holder) {
            place.release.push(holder);
        }
    }

    /// The commons were looked at: what is not as it should be has to be asserted.
    pub(crate) fn compare(&mut self, me: &InstanceId, tenants: &[TenantId], holders: &[Option<LockHolder>]) {
        for (tenant, there) in tenants.iter().zip(holders) {
            if let Some(place) = self.places.get_mut(tenant)
                && let Some(lease) = &place.holder
            {
                place.assert |= there.as_ref() != Some(&of(lease, me));
            }
        }
    }

    /// What is there may be gone, or another's.
    pub(crate) fn doubt(&mut self) {
        self.places.values_mut().for_each(|place| place.assert = place.holder.is_some());
    }

    /// The tenants whose locks tasks of this instance have.
    pub(crate) fn held(&self) -> Vec<TenantId> {
        self.places
            .iter()
            .filter(|(_, place)| place.holder.is_some())
            .map(|(tenant, _)| tenant.clone())
            .collect()
    }

    /// The tenants whose locks are waited for and have to be asked for now.
    pub(crate) fn polled(&self, now: Timestamp) -> Vec<TenantId> {
        let is_due = |claim: &Claim| !claim.granted && claim.at <= now && claim.held_by.is_some();
        self.places
            .iter()
            .filter(|(_, place)| place.claim.as_ref().is_some_and(is_due))
            .map(|(tenant, _)| tenant.clone())
            .collect()
    }

    /// When a lock is next to be asked for.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.places
            .values()
            .filter_map(|place| place.claim.as_ref())
            .filter(|claim| !claim.granted)
            .map(|claim| claim.at)
            .min()
    }

    /// Whether a lock is to be asked for now.
    pub(crate) fn claims(&self, now: Timestamp) -> bool {
        self.places.values().filter_map(|place| place.claim.as_ref()).any(|claim| claim.is_due(now))
    }

    /// A lock was taken, or not, when it should not have been asked for: it is given back, and asked for again later.
    pub(crate) fn withdraw(&mut self, about: About) {
        if let About::Take(tenant, waiter, holder) = about {
            if let Some(claim) = self.claim(&tenant, &waiter) {
                claim.in_doubt = false;
            }
            self.places.entry(tenant).or_default().release.push(holder);
        }
    }

    /// The clock was set back: what is waited for is asked for now.
    pub(crate) fn set_back(&mut self, now: Timestamp) {
        self.places
            .values_mut()
            .filter_map(|place| place.claim.as_mut())
            .for_each(|claim| claim.at = claim.at.min(now));
    }

    /// Whether something is to be given back.
    pub(crate) fn owes(&self) -> bool {
        self.places.values().any(|place| !place.release.is_empty())
    }

    /// Whether there is something to send now.
    pub(crate) fn has_news(&self, now: Timestamp, claims: bool) -> bool {
        let wants = |claim: &Claim| claims && !claim.granted && claim.at <= now;
        self.places
            .values()
            .any(|place| place.assert || !place.release.is_empty() || place.claim.as_ref().is_some_and(wants))
    }

    /// The commons were looked at: who is free is asked for, who is not is left for later.
    pub(crate) fn looked(&mut self, polled: &[TenantId], found: &[SharedLock], now: Timestamp) {
        for tenant in polled {
            let Some(claim) = self.places.get_mut(tenant).and_then(|place| place.claim.as_mut()) else { continue };
            match found.iter().find(|lock| lock.tenant == *tenant) {
                Some(lock) => claim.wait(lock.holder.to_string(), now),
                None => claim.held_by = None,
            }
        }
    }

    /// What is to be sent now.
    pub(crate) fn writes(&self, me: &InstanceId, now: Timestamp, claims: bool) -> Vec<(About, Write)> {
        let mut writes = Vec::new();
        for (tenant, place) in &self.places {
            for holder in place.release.iter().cloned() {
                writes.push((About::Release(tenant.clone(), holder.clone()), Write::ReleaseLock { tenant: tenant.clone(), holder }));
            }
            if let Some(lease) = place.holder.as_ref().filter(|_| place.assert) {
                let holder = of(lease, me);
                let about = About::Renew(tenant.clone(), holder.clone(), lease.lease);
                writes.push((about, Write::RenewLock { tenant: tenant.clone(), holder, lease: lease.lease }));
            }
            if let Some(claim) = place.claim.as_ref().filter(|claim| claims && claim.is_due(now)) {
                let about = About::Number(tenant.clone(), claim.waiter.clone());
                writes.push((about, Write::NextFence { tenant: tenant.clone(), above: place.fence }));
            }
        }
        writes
    }

    /// What became of one of them.
    pub(crate) fn wrote(&mut self, me: &InstanceId, about: About, wrote: Wrote, now: Timestamp) -> Then {
        match about {
            About::Release(tenant, holder) => {
                if let Some(place) = self.places.get_mut(&tenant) {
                    place.release.retain(|over| *over != holder);
                }
                self.tidy(&tenant);
                foreign(wrote).map_or(Then::Nothing, Then::Foreign)
            }
            About::Renew(tenant, holder, lease) => {
                let Some(place) = self.places.get_mut(&tenant) else { return Then::Nothing };
                let is_ours = place.holder.as_ref().is_some_and(|lease| lease.fence == holder.fence);
                place.assert &= !is_ours;
                match wrote {
                    _ if !is_ours => Then::Nothing,
                    Wrote::Missing => Then::Contested(tenant, holder, lease, None),
                    Wrote::Held(other) => Then::Contested(tenant, holder, lease, Some(other)),
                    Wrote::Foreign { key } => Then::Foreign(key),
                    _ => {
                        place.is_there(holder);
                        Then::Nothing
                    }
                }
            }
            About::Number(tenant, waiter) => match (wrote, self.claim(&tenant, &waiter)) {
                (Wrote::Fence(fence), Some(claim)) => {
                    claim.in_doubt = true;
                    let (holder, lease) = (waiter.holder(me, fence), waiter.lease);
                    let write = Write::TakeLock { tenant: tenant.clone(), holder: holder.clone(), lease, instead_of: None };
                    Then::Take(About::Take(tenant, waiter, holder), write)
                }
                (Wrote::Foreign { key }, Some(claim)) => {
                    claim.wait(format!("something else in {key}"), now);
                    Then::Foreign(key)
                }
                _ => Then::Nothing,
            },
            About::Take(tenant, waiter, holder) => {
                let claim = self.claim(&tenant, &waiter);
                match (wrote, claim) {
                    (Wrote::Done, Some(claim)) => {
                        (claim.granted, claim.in_doubt) = (true, false);
                        let fence = holder.fence;
                        self.places.entry(tenant.clone()).and_modify(|place| place.held = Some(holder));
                        Then::Granted(tenant, waiter, Some(fence))
                    }
                    (Wrote::Done, None) => {
                        self.places.entry(tenant).or_default().release.push(holder);
                        Then::Nothing
                    }
                    (Wrote::Held(other), Some(claim)) => {
                        claim.in_doubt = false;
                        claim.wait(other.to_string(), now);
                        Then::Held(tenant, waiter, other.to_string())
                    }
                    (Wrote::Foreign { key }, Some(claim)) => {
                        claim.in_doubt = false;
                        let what = format!("something else in {key}");
                        claim.wait(what.clone(), now);
                        Then::Held(tenant, waiter, what)
                    }
                    _ => Then::Nothing,
                }
            }
        }
    }

    /// The commons are away and there is nobody else: whoever wants a lock has it.
    pub(crate) fn grant_all(&mut self) -> Vec<Then> {
        let mut granted = Vec::new();
        for (tenant, place) in &mut self.places {
            if let Some(claim) = place.claim.as_mut().filter(|claim| !claim.granted) {
                claim.granted = true;
                granted.push(Then::Granted(tenant.clone(), claim.waiter.clone(), None));
            }
        }
        granted
    }

    /// A holding of ours is known to the commons again.
    pub(crate) fn renewed(&mut self, tenant: &TenantId, holder: LockHolder) {
        if let Some(place) = self.places.get_mut(tenant)
            && place.holder.as_ref().is_some_and(|lease| lease.fence == holder.fence)
        {
            place.is_there(holder);
        }
    }

    /// Whether that holding was granted while the commons were away, so that what they have counted since then says nothing about it.
    pub(crate) fn is_local(&self, tenant: &TenantId, holder: &LockHolder) -> bool {
        let is_it = |place: &&Place| place.holder.as_ref().is_some_and(|lease| lease.fence == holder.fence);
        self.places.get(tenant).filter(is_it).is_some_and(|place| place.local)
    }

    /// What has to be asked again, because nobody knows what became of it.
    pub(crate) fn in_doubt(&mut self, about: &About) {
        if let About::Take(tenant, waiter, _) = about
            && let Some(claim) = self.claim(tenant, waiter)
        {
            claim.in_doubt = true;
        }
    }

    fn claim(&mut self, tenant: &TenantId, waiter: &Waiter) -> Option<&mut Claim> {
        self.places.get_mut(tenant)?.claim.as_mut().filter(|claim| claim.waiter == *waiter)
    }

    fn tidy(&mut self, tenant: &TenantId) {
        let is_idle = |place: &Place| place.holder.is_none() && place.claim.is_none() && place.release.is_empty() && place.held.is_none();
        if self.places.get(tenant).is_some_and(is_idle) {
            self.places.remove(tenant);
        }
    }
}

impl Place {
    /// A holding is over if it is not that one: whatever may be there of it is given back.
    fn end(&mut self, me: &InstanceId, now: Option<&Lease>) {
        let Some(over) = self.holder.as_ref().filter(|over| now.is_none_or(|lease| lease.fence != over.fence)) else { return };
        let may_be_there = self.assert || self.ghost;
        match self.held.take() {
            Some(held) => self.release.push(held),
            None if may_be_there => self.release.push(LockHolder { fence: 0, ..of(over, me) }),
            None => {}
        }
        (self.local, self.ghost) = (false, false);
    }

    /// A claim is over: it was granted, or nobody wants it any more, and then what may have come of it is given back.
    fn leave(&mut self, me: &InstanceId, now: Option<&Lease>) {
        let Some(claim) = self.claim.take() else { return };
        let is_granted = claim.granted && now.is_some_and(|lease| lease.task == claim.waiter.task);
        if is_granted {
            (self.local, self.ghost) = (self.held.is_none(), claim.in_doubt);
        } else if claim.in_doubt {
            self.release.push(claim.waiter.holder(me, 0));
        }
    }

    /// The commons know the holding.
    fn is_there(&mut self, holder: LockHolder) {
        (self.local, self.ghost) = (false, false);
        self.held = Some(holder);
    }
}

impl Claim {
    /// It is to be asked for now.
    fn is_due(&self, now: Timestamp) -> bool {
        !self.granted && self.at <= now && self.held_by.is_none()
    }

    fn wait(&mut self, holder: String, now: Timestamp) {
        self.held_by = Some(holder);
        self.at = now.saturating_add(self.pause);
        self.pause = (self.pause * 2).min(POLL.1);
    }
}

trait Holds {
    fn holder(&self, me: &InstanceId, fence: u64) -> LockHolder;
}

impl Holds for Waiter {
    fn holder(&self, me: &InstanceId, fence: u64) -> LockHolder {
        LockHolder { plan: self.plan.clone(), task: self.task.clone(), instance: me.clone(), fence }
    }
}

/// A holding as the commons know it.
pub(crate) fn of(lease: &Lease, me: &InstanceId) -> LockHolder {
    LockHolder { plan: lease.plan.clone(), task: lease.task.clone(), instance: me.clone(), fence: lease.fence }
}

fn foreign(wrote: Wrote) -> Option<String> {
    if let Wrote::Foreign { key } = wrote { Some(key) } else { None }
}

#[cfg(test)]
mod tests;
