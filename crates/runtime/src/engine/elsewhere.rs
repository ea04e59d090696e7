//! What can be seen of tasks, plans and locks that other instances have.
//!
//! Tested by `crates/sdk/tests/it/instances/looks.rs`.

use super::Engine;
use crate::commons::{BLIP, Common, Note, SharingHealth, SharingState, tasks_of};
use crate::error::Error;
use crate::host::PlanSpec;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{
    Command, EntityId, InstanceId, Origin, Plan, PlanId, PlanStatus, Refusal, RunId, TaskStatus, TenantId, Timestamp, WorkflowName,
};
use steadfast_store::{CommonsError, LockHolder, RunRow, ShardId, SharedCheckpoint, SharedLock, SharedPlan, SharedTask, Write};

/// How long a look at what is shared is tried again at the most: until it is known whether that is away.
const INTERRUPTED: Duration = Duration::from_secs(3);

/// How long it is waited for a lock that was given back here to be given back there.
const GIVEN_BACK: Duration = Duration::from_millis(500);

/// How soon.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A tenant's task that was made last, wherever it is.
#[derive(Clone, Debug)]
pub enum Found {
    /// This instance has it.
    Here(RunId),
    /// Another one has, or had, it.
    Elsewhere(Box<Elsewhere>),
}

/// A task that another instance has, or had.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// What is known of it.
    pub task: SharedTask,
    /// How far it has come.
    pub checkpoint: Option<SharedCheckpoint>,
    /// Its tenant's lock.
    pub lock: Option<SharedLock>,
    /// Its owner lives; otherwise this instance may take it up.
    pub owner_lives: bool,
    /// The names of its stages; nothing if its definition is not known here.
    pub stages: Option<Vec<String>>,
}

impl Elsewhere {
    /// Where it stands: what was under way when its owner was lost does not go on by itself.
    pub fn status(&self) -> TaskStatus {
        status_of(&self.task, self.owner_lives)
    }
}

fn status_of(task: &SharedTask, owner_lives: bool) -> TaskStatus {
    match task.status {
        status if owner_lives || status.is_final() || status == TaskStatus::Pending => status,
        _ => TaskStatus::Interrupted,
    }
}

/// A plan, wherever it is.
#[derive(Clone, Debug)]
pub enum FoundPlan {
    /// This instance has it.
    Here(Box<Plan>),
    /// Another one has, or had, it.
    Elsewhere(Box<ElsewherePlan>),
}

/// A plan that another instance has, or had.
#[derive(Clone, Debug)]
pub struct ElsewherePlan {
    /// What is known of it.
    pub plan: SharedPlan,
    /// Its tasks that are known, in order.
    pub tasks: Vec<SharedTask>,
    /// Its owner lives.
    pub owner_lives: bool,
    /// The tasks' owners that live.
    pub alive: Vec<InstanceId>,
}

impl ElsewherePlan {
    /// Where it stands: without its owner no other task of it begins.
    pub fn status(&self) -> PlanStatus {
        match self.plan.status {
            PlanStatus::Running if !self.owner_lives => PlanStatus::Paused,
            status => status,
        }
    }

    /// Where one of its tasks stands.
    pub fn status_of(&self, task: &SharedTask) -> TaskStatus {
        status_of(task, task.owner.as_ref().is_some_and(|owner| self.alive.contains(owner)))
    }
}

impl Engine {
    /// How this instance gets on with what it shares; nothing if it shares nothing.
    pub fn sharing(&self) -> Option<SharingHealth> {
        self.parts.common.as_ref().map(|common| common.health.borrow().clone())
    }

    /// Where it is asked what other instances have; nothing if they have what this one has, or there are none.
    pub(super) fn in_common(&self) -> Option<&Common> {
        self.parts.common.as_ref().filter(|common| !common.sharing.mirror_only)
    }

    /// Whether a shard is here and can be asked.
    pub(crate) fn has_way_to(&self, shard: ShardId) -> bool {
        self.ways.is_here(shard)
    }

    /// Waits until other instances could know everything that is known here now.
    pub async fn shared(&self) {
        let Some(notes) = self.parts.common.as_ref().and_then(|common| common.notes.upgrade()) else { return };
        let (reply, settled) = tokio::sync::oneshot::channel();
        if notes.send(Note::Settled(reply)).is_ok() {
            drop(notes);
            let _it_has_stopped = settled.await;
        }
    }

    /// Finds a tenant's task that was made last: in this instance's own store, or where instances share what they have.
    ///
    /// # Errors
    /// If it has none, or that cannot be found out.
    pub async fn find_task(&self, tenant: &TenantId) -> Result<Found, Error> {
        let here = self.store()?.latest_task(tenant).await.map_err(Error::from_store)?;
        let Some(common) = self.in_common() else { return self.latest_task(tenant).await.map(Found::Here) };
        let is_open = |row: &RunRow| row.task.as_ref().is_some_and(|task| !task.status.is_final());
        let has_begun = |row: &RunRow| row.task.as_ref().is_some_and(|task| task.started_at.is_some());
        if let Some(row) = here.as_ref().filter(|row| is_open(row)) {
            let before = if has_begun(row) { None } else { self.abandoned(common, tenant, &row.run).await };
            return match before {
                Some(there) => Ok(Found::Elsewhere(Box::new(there))),
                None => self.latest_task(tenant).await.map(Found::Here),
            };
        }
        let there = match common.sharing.commons.task_of(tenant).await {
            Ok(Some(task)) => match self.abandoned(common, tenant, &task).await {
                Some(there) => Ok(Some(there)),
                None => self.elsewhere(common, &task).await,
            },
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        let me = Some(&common.sharing.instance);
        match (here, there) {
            (Some(row), Ok(Some(there))) => {
                let is_same = there.task.task == row.run;
                let is_later = !is_same && there.task.created_at > self.made_at(common, &row).await;
                let has_the_lock = !is_same && there.lock.as_ref().is_some_and(|lock| lock.holder.task == there.task.task);
                match is_later || has_the_lock || (is_same && there.task.owner.as_ref() != me) {
                    true => Ok(Found::Elsewhere(Box::new(there))),
                    false => Ok(Found::Here(row.run)),
                }
            }
            (Some(row), _) => Ok(Found::Here(row.run)), // that is all that is known
            (None, Ok(Some(there))) => Ok(Found::Elsewhere(Box::new(there))),
            (None, Ok(None)) => Err(Error::TaskNotFound { tenant: tenant.clone() }),
            (None, Err(error)) => Err(error.into()),
        }
    }

    /// The task that has a tenant's lock, if it is another one than that, and its owner is gone: somebody has to decide on that one first.
    async fn abandoned(&self, common: &Common, tenant: &TenantId, than: &RunId) -> Option<Elsewhere> {
        let lock = common.sharing.commons.locks(std::slice::from_ref(tenant)).await.ok()?.pop()?;
        if lock.holder.task == *than || self.store().ok()?.run(&lock.holder.task).await.ok()?.is_some() {
            return None;
        }
        self.elsewhere(common, &lock.holder.task).await.ok()?.filter(|there| !there.owner_lives)
    }

    /// When a task of this instance was made: one that was taken up is older than its record here.
    async fn made_at(&self, common: &Common, row: &RunRow) -> Timestamp {
        let there = common
            .sharing
            .commons
            .tasks(std::slice::from_ref(&row.run))
            .await
            .ok()
            .and_then(|mut there| there.pop());
        there.map_or(row.started_at, |there| there.created_at.min(row.started_at))
    }

    async fn elsewhere(&self, common: &Common, task: &RunId) -> Result<Option<Elsewhere>, CommonsError> {
        let commons = &common.sharing.commons;
        let Some(task) = commons.tasks(std::slice::from_ref(task)).await?.pop() else { return Ok(None) };
        let checkpoint = commons.checkpoint(&task.task).await?;
        let lock = commons.locks(std::slice::from_ref(&task.tenant)).await?.pop();
        let owner_lives = match &task.owner {
            Some(owner) if *owner != common.sharing.instance => !commons.alive(std::slice::from_ref(owner)).await?.is_empty(),
            _ => false,
        };
        let stages = self.spec_of(&task).map(|(_, spec)| spec.stages);
        Ok(Some(Elsewhere { task, checkpoint, lock, owner_lives, stages }))
    }

    /// What goes for a task of another instance, if its definition is known here.
    pub(super) fn spec_of(&self, task: &SharedTask) -> Option<(WorkflowName, PlanSpec)> {
        let name = WorkflowName::new(&task.definition).ok()?;
        let spec = self.parts.registry.get(&name)?.code.plan_of(&task.definition_hash)?;
        Some((name, spec))
    }

    /// Finds a plan: in this instance's own store, or where instances share what they have.
    ///
    /// # Errors
    /// If there is none, or that cannot be found out.
    pub async fn find_plan(&self, plan: &PlanId) -> Result<FoundPlan, Error> {
        let not_here = match self.plan(plan).await {
            Ok(plan) => return Ok(FoundPlan::Here(Box::new(plan))),
            Err(Error::Refused(refusal @ Refusal::PlanNotFound { .. })) => Error::Refused(refusal),
            Err(error) => return Err(error),
        };
        let Some(common) = self.in_common() else { return Err(not_here) };
        let commons = &common.sharing.commons;
        let Some(plan) = commons.plan(plan).await? else { return Err(not_here) };
        let tasks = tasks_of(&**commons, &plan.tasks).await?;
        let mut owners: Vec<_> = tasks.iter().filter_map(|task| task.owner.clone()).chain([plan.owner.clone()]).collect();
        owners.sort_unstable();
        owners.dedup();
        let mut alive = commons.alive(&owners).await?;
        alive.retain(|owner| *owner != common.sharing.instance); // what it had in an earlier life is not there any more
        let owner_lives = alive.contains(&plan.owner);
        Ok(FoundPlan::Elsewhere(Box::new(ElsewherePlan { plan, tasks, owner_lives, alive })))
    }

    /// Whose locks others have, of these tenants: other instances, or a task that this one took up and has no record of. While that cannot be seen, an instance that may go on by itself takes it that nobody has.
    pub(super) async fn locked_elsewhere(
        &self,
        tenants: &[TenantId],
        is_own: impl Fn(&LockHolder) -> bool,
    ) -> Result<Vec<SharedLock>, Error> {
        let Some(common) = self.in_common() else { return Ok(Vec::new()) };
        let (me, mut waited) = (&common.sharing.instance, false);
        loop {
            let locks = self.unless_alone(common, || common.sharing.commons.locks(tenants)).await?.unwrap_or_default();
            let here = self.store()?.locks_of(tenants).await.map_err(Error::from_store)?;
            let is_here = |lock: &SharedLock| here.iter().any(|row| row.tenant == lock.tenant && row.lease.task == lock.holder.task);
            let is_mine = |lock: &SharedLock| lock.holder.instance == *me && (is_own(&lock.holder) || is_here(lock));
            let others: Vec<_> = locks.into_iter().filter(|lock| !is_mine(lock)).collect();
            if waited || others.iter().all(|lock| lock.holder.instance != *me) {
                return Ok(others);
            }
            waited = true;
            tokio::select! {
                biased;
                () = self.shared() => {} // what was given back here is given back there then
                () = self.parts.clock.sleep(GIVEN_BACK) => {}
            }
        }
    }

    /// Who has a tenant's lock, as far as that can be seen now.
    pub(super) async fn seen_elsewhere(&self, tenant: &TenantId) -> Option<String> {
        let common = self.in_common()?;
        let lock = common.sharing.commons.locks(std::slice::from_ref(tenant)).await.ok()?.pop()?;
        (lock.holder.instance != common.sharing.instance).then(|| lock.holder.to_string())
    }

    /// Looks at what is shared; nothing if that is away, and this instance may go on by itself. A short interruption is waited for.
    async fn unless_alone<'a, T>(
        &self,
        common: &Common,
        look: impl Fn() -> BoxFuture<'a, Result<T, CommonsError>> + Send + Sync,
    ) -> Result<Option<T>, Error> {
        let clock = self.clock();
        let until = clock.now().saturating_add(INTERRUPTED);
        loop {
            let why = match look().await {
                Ok(found) => return Ok(Some(found)),
                Err(CommonsError::Away { why }) => why,
                Err(error) => return Err(error.into()),
            };
            let Some(refuses) = self.refuses() else { return Ok(None) };
            let may_pass = match self.sharing().map(|health| health.state) {
                Some(SharingState::Up) => true,
                Some(SharingState::Away { since, .. }) => clock.now().saturating_since(since) < BLIP,
                _ => false,
            };
            if !may_pass || clock.now() >= until {
                return Err(Error::SharingAway { why: format!("{why}; {refuses}") });
            }
            if let Some(notes) = common.notes.upgrade() {
                let _it_has_stopped = notes.send(Note::Look);
            }
            clock.sleep(LOOK_AGAIN).await;
        }
    }

    /// Why nothing new begins while what is shared is away; nothing if it does.
    fn refuses(&self) -> Option<String> {
        match self.sharing()?.state {
            SharingState::Away { refuses, .. } => refuses,
            SharingState::Starting => Some("it was not reached since the start".into()),
            SharingState::Up => Some("others may have taken locks".into()),
        }
    }

    /// Refuses a plan whose id another instance's plan has.
    pub(super) async fn is_free(&self, plan: &PlanId) -> Result<(), Error> {
        let Some(common) = self.in_common() else { return Ok(()) };
        let there = self.unless_alone(common, || common.sharing.commons.plan(plan)).await?.flatten();
        match there.filter(|there| there.owner != common.sharing.instance) {
            Some(other) => Err(Error::Elsewhere { what: format!("plan {plan}"), instance: Some(other.owner) }),
            None => Ok(()),
        }
    }

    /// Refuses what is wanted of a plan that another instance has.
    pub(super) async fn not_here(&self, plan: &PlanId, refusal: Error) -> Error {
        let Some(common) = self.in_common() else { return refusal };
        match common.sharing.commons.plan(plan).await {
            Ok(Some(there)) => Error::Elsewhere { what: format!("plan {plan}"), instance: Some(there.owner) },
            _ => refusal,
        }
    }

    /// Takes a lock away from a task of an instance that is gone.
    pub(super) async fn break_elsewhere(&self, tenant: &TenantId, origin: Origin) -> Result<(), Error> {
        let missing = || Error::Refused(Refusal::LockNotFound { tenant: tenant.clone() });
        let common = self.in_common().ok_or_else(missing)?;
        let commons = Arc::clone(&common.sharing.commons);
        let lock = commons.locks(std::slice::from_ref(tenant)).await?.pop().ok_or_else(missing)?;
        let instance = &lock.holder.instance;
        if *instance != common.sharing.instance && !commons.alive(std::slice::from_ref(instance)).await?.is_empty() {
            return Err(Error::Elsewhere { what: format!("the lock of tenant {tenant}"), instance: Some(instance.clone()) });
        }
        let command = Command::BreakElsewhere { holder: lock.holder.to_string(), origin };
        self.tell_entity(EntityId::Lock(tenant.clone()), command).await?;
        commons.send(vec![Write::ReleaseLock { tenant: tenant.clone(), holder: lock.holder }]).await?;
        Ok(())
    }
}
