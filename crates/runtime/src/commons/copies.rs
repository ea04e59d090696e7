//! Locks as the store has them, and the copies of them in the commons, for people to see: nobody asks a copy whether a lock is free.

use super::image::LockImage;
use super::locks::of;
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_kernel::{InstanceId, Lease, Seq, TenantId, Timestamp};
use steadfast_store::{LockHolder, Write, Wrote};

/// The locks of this instance's shards that somebody has, and copies of holdings that are over.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    places: BTreeMap<TenantId, Place>,
}

#[derive(Debug, Default)]
struct Place {
    seq: Seq,
    holder: Option<Lease>,
    /// The number of the last holding, and the one that is known there: it outlives the holding.
    fence: u64,
    raised: u64,
    /// The copy, as it was last written.
    told: Option<LockHolder>,
    /// The copy is to be written.
    behind: bool,
    /// Something else is in its place: it is tried again later.
    blocked: bool,
    /// A holding of before that has not been removed.
    instead_of: Option<LockHolder>,
    /// Holdings that are over.
    over: Vec<LockHolder>,
}

/// What a write was about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum About {
    Raise(TenantId, u64),
    Take(TenantId, LockHolder),
    Renew(TenantId, LockHolder),
    Release(TenantId, LockHolder),
}

/// What has to be done after a write.
#[derive(Debug, PartialEq)]
pub(crate) enum Then {
    Nothing,
    /// It was not there though it should be.
    Lost,
    /// Another instance has that lock.
    Another(TenantId, LockHolder),
    /// Something else is there.
    Foreign(String),
}

impl Copies {
    /// A lock is so now.
    pub(crate) fn put(&mut self, me: &InstanceId, image: LockImage) {
        let LockImage { seq, tenant, holder, fence, .. } = image;
        let place = self.places.entry(tenant.clone()).or_default();
        if place.seq < seq {
            let is_another = |before: &&Lease| holder.as_ref().is_none_or(|lease| lease.fence != before.fence);
            if let Some(before) = place.holder.as_ref().filter(is_another) {
                place.over.push(of(before, me)); // a former writer may have written it, if this one has not
                place.told = None;
            }
            place.behind = holder.is_some() && (place.behind || place.holder != holder);
            (place.seq, place.holder, place.fence) = (seq, holder, fence);
        }
        self.tidy(&tenant);
    }

    /// A copy of a holding that is over was found.
    pub(crate) fn left_over(&mut self, tenant: &TenantId, holder: LockHolder) {
        let place = self.places.entry(tenant.clone()).or_default();
        if place.holder.as_ref().is_none_or(|lease| lease.fence != holder.fence) {
            place.over.push(holder);
        }
    }

    /// These locks are not this instance's to copy any more. What is over is removed all the same, and its number told.
    pub(crate) fn leave(&mut self, is_gone: impl Fn(&TenantId) -> bool) {
        self.places.retain(|tenant, place| {
            if is_gone(tenant) {
                let Place { over, fence, raised, .. } = std::mem::take(place);
                *place = Place { over, fence, raised, ..Place::default() };
            }
            place.is_needed()
        });
    }

    /// What is there may be gone, or older.
    pub(crate) fn doubt(&mut self) {
        for place in self.places.values_mut() {
            (place.told, place.behind, place.raised) = (None, place.holder.is_some(), 0);
        }
    }

    /// What had something else in its place may have it no more.
    pub(crate) fn try_again(&mut self) {
        self.places.values_mut().for_each(|place| place.blocked = false);
    }

    /// Whether there is something to send now.
    pub(crate) fn has_news(&self) -> bool {
        let is_behind = |place: &Place| place.behind || place.raised < place.fence;
        self.places.values().any(|place| (is_behind(place) && !place.blocked) || !place.over.is_empty())
    }

    /// What is to be sent now. A copy lives as long as the holding, unless that is renewed.
    pub(crate) fn writes(&self, me: &InstanceId, now: Timestamp) -> Vec<(About, Write)> {
        let mut writes = Vec::new();
        for (tenant, place) in &self.places {
            for holder in place.over.iter().cloned() {
                writes.push((About::Release(tenant.clone(), holder.clone()), Write::ReleaseLock { tenant: tenant.clone(), holder }));
            }
            if place.raised < place.fence && !place.blocked {
                let raise = Write::RaiseFence { tenant: tenant.clone(), to: place.fence };
                writes.push((About::Raise(tenant.clone(), place.fence), raise));
            }
            let Some(lease) = place.holder.as_ref().filter(|_| place.behind && !place.blocked) else { continue };
            let (holder, left) = (of(lease, me), lease.expires_at.saturating_since(now).clamp(Duration::from_millis(1), lease.lease));
            if place.told.as_ref() == Some(&holder) {
                let renew = Write::RenewLock { tenant: tenant.clone(), holder: holder.clone(), lease: left };
                writes.push((About::Renew(tenant.clone(), holder), renew));
                continue;
            }
            let (about, instead_of) = (About::Take(tenant.clone(), holder.clone()), place.instead_of.clone());
            writes.push((about, Write::TakeLock { tenant: tenant.clone(), holder, lease: left, instead_of }));
        }
        writes
    }

    /// What became of one of them.
    pub(crate) fn wrote(&mut self, me: &InstanceId, about: About, wrote: Wrote) -> Then {
        let then = match (&about, wrote) {
            (_, Wrote::Foreign { key }) => Then::Foreign(key),
            (About::Renew(..), Wrote::Missing) => Then::Lost,
            (About::Take(tenant, _), Wrote::Held(other)) if other.instance != *me => Then::Another(tenant.clone(), other),
            (About::Take(tenant, mine), Wrote::Held(other)) => {
                let place = self.places.entry(tenant.clone()).or_default();
                place.behind &= other.fence < mine.fence; // otherwise the lock has gone on without this instance
                place.instead_of = Some(other);
                return Then::Nothing;
            }
            (About::Renew(tenant, _), Wrote::Held(_)) => {
                self.places.entry(tenant.clone()).or_default().told = None;
                return Then::Nothing;
            }
            _ => Then::Nothing,
        };
        let (About::Raise(tenant, _) | About::Take(tenant, _) | About::Renew(tenant, _) | About::Release(tenant, _)) = &about;
        let tenant = tenant.clone();
        let Some(place) = self.places.get_mut(&tenant) else { return then };
        match about {
            About::Release(_, holder) => place.over.retain(|over| *over != holder),
            About::Raise(_, fence) if then == Then::Nothing => place.raised = fence,
            _ if then == Then::Lost => place.told = None,
            About::Take(_, holder) | About::Renew(_, holder) if then == Then::Nothing => {
                (place.told, place.behind, place.instead_of) = (Some(holder), false, None);
            }
            _ => place.blocked = true,
        }
        self.tidy(&tenant);
        then
    }

    fn tidy(&mut self, tenant: &TenantId) {
        if self.places.get(tenant).is_some_and(|place| !place.is_needed()) {
            self.places.remove(tenant);
        }
    }
}

impl Place {
    fn is_needed(&self) -> bool {
        self.holder.is_some() || !self.over.is_empty() || self.raised < self.fence
    }
}

#[cfg(test)]
mod tests;
