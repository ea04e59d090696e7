//! What follows from what the commons say: locks are granted or lost, tasks are handed over, and the shard is told.
//!
//! Tested by `crates/sdk/tests/it/instances/foreign.rs`.
//! Tested by `crates/sdk/tests/it/instances/late.rs`.
//! Tested by `crates/sdk/tests/it/instances/outages/reconciled.rs`.

use super::{Worker, mirror};
use crate::commons::Note;
use crate::error::Error;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::lock::Waiter;
use steadfast_kernel::{Answer, Claimed, Command, EntityId, HandOver, InstanceId, Origin, RunId, SettleClaim, TenantId, Timestamp};
use steadfast_store::{CommonsError, LockHolder, Write, Wrote};

impl Worker {
    pub(super) fn follow(&mut self, then: mirror::Then, now: Timestamp) {
        match then {
            mirror::Then::Nothing | mirror::Then::Suspect(_) => {}
            mirror::Then::Lost => self.beat_at = now, // before it is written again it is seen whether all is lost
            mirror::Then::Reached(task, version) => {
                self.gate.reached(&task, version);
                self.changes += 1;
            }
            mirror::Then::NotYours(task, owner, fence) => self.hand_over(&task, owner, fence),
            mirror::Then::PlanNotYours(plan, owner) => {
                let owner = owner.as_ref().map_or("nobody that is known", InstanceId::as_str);
                tracing::error!(%plan, owner, "another instance has a plan of the same id: what others know of it is not about this one");
            }
            mirror::Then::Foreign(key) => self.is_foreign(key),
        }
    }

    /// Another instance may have come further with these tasks: who has them says so.
    pub(super) async fn look_at_owners(&mut self, suspects: &[RunId]) -> Result<(), CommonsError> {
        let found = crate::commons::tasks_of(&*self.sharing.commons, suspects).await?;
        let me = self.sharing.instance.clone();
        for task in found.into_iter().filter(|task| task.owner.as_ref() != Some(&me)) {
            self.mirror.forget(&task.task);
            self.hand_over(&task.task, task.owner, task.fence);
        }
        Ok(())
    }

    pub(super) fn is_foreign(&mut self, key: String) {
        if self.foreign.insert(key.clone(), self.clock.now()).is_none() {
            tracing::error!(
                key,
                "this key of Redis holds something that no instance has put there; it is left alone: look who did, and remove it"
            );
        }
    }

    /// Another instance has gone on with a task.
    pub(super) fn hand_over(&mut self, task: &RunId, to: Option<InstanceId>, fence: u64) {
        self.others_saw(to.as_ref());
        let owner = to.as_ref().map_or_else(|| "nobody".to_string(), ToString::to_string);
        let why = format!("Redis says that the task is owned by {owner} with fence {fence}");
        tracing::warn!(%task, owner, fence, "the task is handed over");
        self.gate.shut(task, true);
        self.handed.insert(task.clone(), fence);
        let origin = Origin { by: Some("the engine".into()), why: Some(why), command: None };
        self.tell(EntityId::Run(task.clone()), Command::HandOverRun(HandOver { to, origin }), None);
    }

    pub(super) fn others_saw(&mut self, other: Option<&InstanceId>) {
        if let Some(other) = other.filter(|other| **other != self.sharing.instance) {
            self.others.saw(other, self.clock.now());
        }
    }

    /// A lock is a task's: that is put on record, and given back if nobody wants it any more.
    pub(super) fn granted(&mut self, tenant: TenantId, waiter: Waiter, fence: Option<u64>) {
        self.gate.shut(&waiter.task, false);
        let holder = fence.map(|fence| LockHolder {
            plan: waiter.plan.clone(),
            task: waiter.task.clone(),
            instance: self.sharing.instance.clone(),
            fence,
        });
        let settle = SettleClaim { task: waiter.task, asked: waiter.asked, claimed: Claimed::Granted { fence } };
        let unwanted = holder.map(|holder| Note::Unwanted { tenant: tenant.clone(), holder });
        self.tell(EntityId::Lock(tenant), Command::SettleClaim(settle), unwanted);
    }

    pub(super) fn held(&mut self, tenant: TenantId, waiter: Waiter, holder: String) {
        let other = LockHolder::parse(&holder).map(|holder| holder.instance);
        self.others_saw(other.as_ref());
        let settle = SettleClaim { task: waiter.task, asked: waiter.asked, claimed: Claimed::Held { holder } }; // also for those behind it who do not wait
        self.tell(EntityId::Lock(tenant), Command::SettleClaim(settle), None);
    }

    /// A lock that is held here is nobody's there, or somebody else's. The higher fence wins; the commons do if they are equal.
    pub(super) async fn contest(
        &mut self,
        tenant: TenantId,
        mine: LockHolder,
        lease: Duration,
        other: Option<LockHolder>,
    ) -> Result<(), CommonsError> {
        let commons = Arc::clone(&self.sharing.commons);
        let known = match commons.fence(&tenant).await {
            Err(CommonsError::Foreign { key }) => {
                self.is_foreign(key);
                return Ok(());
            }
            known => known?,
        };
        if let Some(other) = other
            .as_ref()
            .filter(|other| other.task == mine.task && other.instance != mine.instance && other.fence >= mine.fence)
        {
            self.hand_over(&mine.task, Some(other.instance.clone()), other.fence);
            return Ok(());
        }
        let rival = other.as_ref().filter(|other| other.instance != mine.instance || other.task != mine.task);
        let is_lost = match (rival, &other) {
            (Some(rival), _) => rival.fence >= mine.fence,
            (None, Some(_)) => false, // the answer to an earlier claim of it was lost
            (None, None) => known > mine.fence && !self.locks.is_local(&tenant, &mine),
        };
        if is_lost {
            let who = rival.map_or_else(|| "it was another's meanwhile".to_string(), |rival| format!("{rival} has it"));
            self.lose(tenant, &mine, &who);
            return Ok(());
        }
        if let Some(other) = rival {
            self.metrics.conflicts.increment(1);
            tracing::error!(%tenant, %other, %mine, "the lock was taken by another with a lower fence: it is taken back");
        }
        let raise = Write::RaiseFence { tenant: tenant.clone(), to: mine.fence };
        let take = Write::TakeLock { tenant: tenant.clone(), holder: mine.clone(), lease, instead_of: other };
        match commons.send(vec![raise, take]).await?.pop() {
            Some(Wrote::Done) => self.locks.renewed(&tenant, mine),
            Some(Wrote::Held(other)) => self.lose(tenant, &mine, &format!("{other} has it")),
            Some(Wrote::Foreign { key }) => self.is_foreign(key),
            _ => {}
        }
        Ok(())
    }

    /// A lock that is held here is another's: the task that has it stops, and a person decides.
    pub(super) fn lose(&mut self, tenant: TenantId, mine: &LockHolder, who: &str) {
        let fence = mine.fence;
        self.metrics.conflicts.increment(1);
        self.gate.shut(&mine.task, true);
        tracing::error!(%tenant, fence, who, "a lock was lost to another");
        let why = format!("the lock in Redis is not this task's any more: {who}");
        let origin = Origin { by: Some("the engine".into()), why: Some(why), command: None };
        self.tell(EntityId::Lock(tenant), Command::LoseLock { fence, origin }, None);
    }

    /// Has a command carried out, however long that takes; if it comes too late, that is noted.
    pub(super) fn tell(&self, entity: EntityId, command: Command, unless: Option<Note>) {
        let (engine, clock, own) = (self.engine.clone(), Arc::clone(&self.clock), self.own.clone());
        tokio::spawn(async move {
            loop {
                let Some(running) = engine.upgrade() else { return };
                match running.tell_entity(entity.clone(), command.clone()).await {
                    Err(Error::Busy { retry_after, .. } | Error::Unavailable { retry_after, .. }) => clock.sleep(retry_after).await,
                    Ok(Answer::Superseded) => {
                        if let (Some(note), Some(own)) = (unless, own.upgrade()) {
                            let _it_has_stopped = own.send(note);
                        }
                        return;
                    }
                    Ok(_) => return,
                    Err(error) => return tracing::debug!(%entity, %error, "what the commons say is of no concern any more"),
                }
            }
        });
    }
}
