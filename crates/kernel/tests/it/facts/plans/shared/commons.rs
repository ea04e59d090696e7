//! A small model of what instances have in common: who has a lock, who owns a task, and how far it has come. Every write compares first.

use std::collections::BTreeMap;
use steadfast_kernel::{RunId, TaskOptions, TenantId, Timestamp};

/// Which instance.
pub(super) type Who = usize;

#[derive(Clone, Debug, Default)]
pub(super) struct Commons {
    locks: BTreeMap<TenantId, Holding>,
    fences: BTreeMap<TenantId, u64>,
    pub(super) tasks: BTreeMap<RunId, Owned>,
}

/// Who has a lock.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Holding {
    pub(super) instance: Who,
    pub(super) task: RunId,
    pub(super) fence: u64,
    pub(super) until: Timestamp,
}

/// What is known of a task.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Owned {
    /// Nobody's if it was handed over.
    pub(super) owner: Option<Who>,
    pub(super) fence: u64,
    /// So many of its stages are done.
    pub(super) done: usize,
    pub(super) is_over: bool,
    pub(super) started_at: Option<Timestamp>,
    pub(super) options: TaskOptions,
}

impl Commons {
    /// Who has that lock now.
    pub(super) fn holding(&self, tenant: &TenantId, now: Timestamp) -> Option<&Holding> {
        self.locks.get(tenant).filter(|holding| holding.until > now)
    }

    pub(super) fn held(&self) -> impl Iterator<Item = (&TenantId, &Holding)> {
        self.locks.iter()
    }

    /// The number of the last holding.
    pub(super) fn fence(&self, tenant: &TenantId) -> u64 {
        self.fences.get(tenant).copied().unwrap_or_default()
    }

    pub(super) fn raise(&mut self, tenant: &TenantId, to: u64) {
        let fence = self.fences.entry(tenant.clone()).or_default();
        *fence = (*fence).max(to);
    }

    pub(super) fn next_fence(&mut self, tenant: &TenantId, above: u64) -> u64 {
        self.raise(tenant, above);
        self.raise(tenant, self.fence(tenant) + 1);
        self.fence(tenant)
    }

    /// Takes it if it is free, the same task's of the same instance, or that holder's; otherwise whose it is.
    pub(super) fn take(&mut self, tenant: &TenantId, new: Holding, instead_of: Option<&Holding>, now: Timestamp) -> Result<(), Holding> {
        let stays = |there: &&Holding| (there.instance != new.instance || there.task != new.task) && Some(*there) != instead_of;
        match self.holding(tenant, now).filter(stays) {
            Some(other) => Err(other.clone()),
            None => {
                self.locks.insert(tenant.clone(), new);
                Ok(())
            }
        }
    }

    /// It is free again if that is its holding.
    pub(super) fn release(&mut self, tenant: &TenantId, instance: Who, fence: u64) {
        self.locks
            .retain(|of, holding| of != tenant || holding.instance != instance || holding.fence != fence);
    }

    /// What its owner knows of it; who owns it instead, if it is another or has come further.
    pub(super) fn own(&mut self, task: &RunId, new: Owned) -> Result<(), Option<Who>> {
        if let Some(there) = self.tasks.get(task)
            && (there.fence > new.fence || (there.owner != new.owner && there.fence >= new.fence))
        {
            return Err(there.owner);
        }
        self.tasks.insert(task.clone(), new);
        Ok(())
    }
}
