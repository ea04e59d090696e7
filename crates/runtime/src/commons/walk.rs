//! What an earlier life of this instance has left: it is looked at once after the start, so that others come to know it as it is.

use super::{Note, Sharing, is_over, locks_of, tasks_of};
use crate::engine::WeakEngine;
use crate::error::Error;
use std::collections::{BTreeMap, BTreeSet};
use steadfast_kernel::{EntityId, PlanId, PlanStatus, RunId, TenantId, Timestamp};
use steadfast_store::{
    CommonsError, LockHolder, PlanCursor, PlanFilter, RunCursor, RunFilter, RunRow, ShardId, SharedTask, Store, shard_of,
};
use tokio::sync::mpsc;

/// How many are read at once.
const PAGE: usize = 500;

/// Why a walk has come to nothing.
pub(super) enum Stopped {
    /// The engine has.
    Engine,
    /// The store cannot be read now.
    Store(Error),
    /// The commons cannot.
    Commons(CommonsError),
}

/// Has everything that may be different there noted, and says which locks there are of holdings that are over.
pub(super) async fn walk(
    sharing: &Sharing,
    engine: &WeakEngine,
    notes: &mpsc::WeakUnboundedSender<Note>,
    since: Timestamp,
) -> Result<(), Stopped> {
    let walker = Walker { sharing, engine, shards: None };
    walker.look_at_all(notes, since).await?;
    let tenants = walker.look_at_ended(since).await?; // nobody waits for that
    let left_over = walker.look_at_locks(tenants).await?;
    if let Some(notes) = notes.upgrade() {
        let _it_has_stopped = notes.send(Note::LeftOver(left_over));
    }
    Ok(())
}

/// The same for some shards of a store that other instances have the rest of. Nobody takes tasks up from elsewhere there, so that every task has its plan.
pub(super) async fn walk_shards(
    sharing: &Sharing,
    engine: &WeakEngine,
    notes: &mpsc::WeakUnboundedSender<Note>,
    since: Timestamp,
    shards: &BTreeSet<ShardId>,
) -> Result<(), Stopped> {
    Walker { sharing, engine, shards: Some(shards) }.look_at_all(notes, since).await
}

/// Who looks at what is in the store.
struct Walker<'a> {
    sharing: &'a Sharing,
    engine: &'a WeakEngine,
    /// The shards that are looked at; all if there is nothing.
    shards: Option<&'a BTreeSet<ShardId>>,
}

impl Walker<'_> {
    /// Has everything of the store noted that is this instance's, and then says which locks are over.
    async fn look_at_all(&self, notes: &mpsc::WeakUnboundedSender<Note>, since: Timestamp) -> Result<(), Stopped> {
        let tenants = self.look_at_plans(since).await?;
        let left_over = self.look_at_locks(tenants).await?;
        if let Some(notes) = notes.upgrade() {
            let _it_has_stopped = notes.send(Note::Walked { left_over });
        }
        Ok(())
    }

    /// Whether it is one of those that are looked at.
    fn is_of(&self, entity: &EntityId) -> Result<bool, Stopped> {
        let Some(shards) = self.shards else { return Ok(true) };
        Ok(shards.contains(&shard_of(entity, self.store()?.shards())))
    }

    /// Notes every plan and task that is open, or has failed and may go on; of those that are over, the ones of which others know something else.
    async fn look_at_plans(&self, since: Timestamp) -> Result<BTreeSet<TenantId>, Stopped> {
        let (mut after, mut tenants) = (None::<PlanCursor>, BTreeSet::new());
        loop {
            let store = self.store()?;
            let page = store.plans(&PlanFilter::default(), after.as_ref(), PAGE).await.map_err(of_store)?;
            drop(store);
            let Some(last) = page.last() else { break };
            after = Some(PlanCursor::from(last));
            for row in page {
                let has_ended = row.status.is_final();
                if has_ended && row.status != PlanStatus::Failed && row.ended_at.is_some_and(|ended| ended < since) {
                    continue; // others have forgotten it
                }
                let may_go_on = self.look_at_tasks(&row.plan, has_ended, &mut tenants).await?;
                let is_of = self.is_of(&EntityId::Plan(row.plan.clone()))?;
                if is_of && (!has_ended || may_go_on || self.is_different(&row).await?) {
                    self.share(EntityId::Plan(row.plan)).await?;
                }
            }
        }
        self.look_at_adopted(&mut tenants).await?;
        Ok(tenants)
    }

    async fn is_different(&self, row: &steadfast_store::PlanRow) -> Result<bool, Stopped> {
        let there = self.sharing.commons.plan(&row.plan).await;
        match there {
            Ok(there) => Ok(there.is_some_and(|there| there.owner == self.sharing.instance && there.status != row.status)),
            Err(CommonsError::Foreign { .. }) => Ok(false),
            Err(error) => Err(Stopped::Commons(error)),
        }
    }

    /// True if one of them may go on.
    async fn look_at_tasks(&self, plan: &PlanId, has_ended: bool, tenants: &mut BTreeSet<TenantId>) -> Result<bool, Stopped> {
        let (mut after, mut may_go_on): (Option<RunId>, _) = (None, false);
        loop {
            let page = self.store()?.tasks(plan, after.as_ref(), PAGE).await.map_err(of_store)?;
            let Some(last) = page.last() else { return Ok(may_go_on) };
            after = Some(last.run.clone());
            let there = match has_ended {
                true => self.differing(&page).await?,
                false => BTreeSet::new(),
            };
            for row in page {
                let is_open = row.task.as_ref().is_some_and(|task| !is_over(task.status));
                may_go_on |= is_open;
                if !has_ended || is_open || there.contains(&row.run) {
                    tenants.extend(row.tenant.as_deref().and_then(|tenant| TenantId::new(tenant).ok()));
                    self.share(EntityId::Run(row.run)).await?;
                }
            }
        }
    }

    /// Those tasks of which others know something else.
    async fn differing(&self, rows: &[RunRow]) -> Result<BTreeSet<RunId>, Stopped> {
        let ids: Vec<RunId> = rows.iter().map(|row| row.run.clone()).collect();
        let there = tasks_of(&*self.sharing.commons, &ids).await.map_err(Stopped::Commons)?;
        let is_different = |row: &&RunRow| {
            let status = row.task.as_ref().map(|task| task.status);
            let is_another = |task: &SharedTask| Some(task.status) != status || task.owner.as_ref() != Some(&self.sharing.instance);
            there.iter().any(|task| task.task == row.run && is_another(task))
        };
        Ok(rows.iter().filter(is_different).map(|row| row.run.clone()).collect())
    }

    /// Tasks that were adopted have no plan here.
    async fn look_at_adopted(&self, tenants: &mut BTreeSet<TenantId>) -> Result<(), Stopped> {
        let mut after: Option<TenantId> = None;
        loop {
            let page = self.store()?.locks(after.as_ref(), PAGE).await.map_err(of_store)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.tenant.clone());
            for row in page {
                tenants.insert(row.tenant.clone());
                self.share(EntityId::Run(row.lease.task)).await?;
                self.share(EntityId::Lock(row.tenant)).await?;
            }
        }
    }

    /// Tasks that were adopted, have no plan here and no lock any more: they may have ended when nobody could be told.
    async fn look_at_ended(&self, since: Timestamp) -> Result<BTreeSet<TenantId>, Stopped> {
        let workflows = self.engine.upgrade().ok_or(Stopped::Engine)?.workflows();
        let (mut here, mut tenants) = (BTreeMap::<PlanId, bool>::new(), BTreeSet::new());
        for (workflow, _) in workflows.into_iter().filter(|(_, registered)| registered.is_plan) {
            let filter = RunFilter { workflow: Some(workflow), since: Some(since), ..RunFilter::default() };
            let mut after: Option<RunCursor> = None;
            loop {
                let mut page = self.store()?.runs(&filter, after.as_ref(), PAGE).await.map_err(of_store)?;
                let Some(last) = page.last() else { break };
                after = Some(RunCursor::from(last));
                for task in page.iter().filter_map(|row| row.task.as_ref()) {
                    if !here.contains_key(&task.plan) {
                        let is_here = self.store()?.plan(&task.plan).await.map_err(of_store)?.is_some();
                        here.insert(task.plan.clone(), is_here);
                    }
                }
                page.retain(|row| row.task.as_ref().is_some_and(|task| here.get(&task.plan) == Some(&false)));
                let there = self.differing(&page).await?;
                for row in page.into_iter().filter(|row| there.contains(&row.run)) {
                    tenants.extend(row.tenant.as_deref().and_then(|tenant| TenantId::new(tenant).ok()));
                    self.share(EntityId::Run(row.run)).await?;
                }
            }
        }
        Ok(tenants)
    }

    /// Locks that are this instance's there and nobody's here.
    async fn look_at_locks(&self, tenants: BTreeSet<TenantId>) -> Result<Vec<(TenantId, LockHolder)>, Stopped> {
        let (tenants, mut left_over) = (tenants.into_iter().collect::<Vec<_>>(), Vec::new());
        for page in tenants.chunks(PAGE) {
            let there = locks_of(&*self.sharing.commons, page).await.map_err(Stopped::Commons)?;
            let here = self.store()?.locks_of(page).await.map_err(of_store)?;
            let is_held = |tenant: &TenantId, holder: &LockHolder| {
                here.iter()
                    .any(|row| row.tenant == *tenant && row.lease.task == holder.task && row.lease.fence == holder.fence)
            };
            let over = there
                .into_iter()
                .filter(|lock| lock.holder.instance == self.sharing.instance && !is_held(&lock.tenant, &lock.holder));
            left_over.extend(over.map(|lock| (lock.tenant, lock.holder)));
        }
        Ok(left_over)
    }

    fn store(&self) -> Result<std::sync::Arc<dyn Store>, Stopped> {
        self.engine.upgrade().and_then(|engine| engine.store().ok()).ok_or(Stopped::Engine)
    }

    async fn share(&self, entity: EntityId) -> Result<(), Stopped> {
        if !self.is_of(&entity)? {
            return Ok(());
        }
        loop {
            let engine = self.engine.upgrade().ok_or(Stopped::Engine)?;
            match engine.share(entity.clone()).await {
                Err(Error::Busy { retry_after, .. }) => engine.clock().sleep(retry_after).await,
                Err(Error::Stopped) if self.shards.is_none() => return Err(Stopped::Engine), // otherwise it may be elsewhere by now
                Err(error @ (Error::Unavailable { .. } | Error::Store(_))) => return Err(Stopped::Store(error)),
                Ok(()) | Err(_) => return Ok(()), // it is gone, or set aside
            }
        }
    }
}

fn of_store(error: steadfast_store::Error) -> Stopped {
    Stopped::Store(Error::from_store(error))
}
