//! What is done by tenant: whoever asks knows tenants, not tasks.

use super::{PlanHandle, PlanInfo, TaskInfo};
use crate::operate::{Act, Retry, Verb};
use crate::{Engine, Error, Run};
use steadfast_kernel::{Origin, PlanId, RunId, TenantId};
use steadfast_runtime as runtime;
use steadfast_store::LockRow;

impl Engine {
    /// The plan of that id, which may have been created by an earlier process. Whether it exists shows when it is asked for something.
    ///
    /// # Errors
    /// If that cannot be an id.
    pub fn plan(&self, id: &str) -> Result<PlanHandle, Error> {
        let id = PlanId::new(id).map_err(runtime::Error::from)?;
        Ok(PlanHandle { engine: self.clone(), id, is_new: false })
    }

    /// Where a plan stands.
    ///
    /// # Errors
    /// If there is no such plan, or it cannot be read now.
    pub async fn plan_status(&self, id: &str) -> Result<PlanInfo, Error> {
        self.plan(id)?.info().await
    }

    /// Where the task of a tenant stands that was made last.
    ///
    /// # Errors
    /// If it has none, or it cannot be read now.
    pub async fn task_status_by_tenant(&self, tenant: &str) -> Result<TaskInfo, Error> {
        let tenant = tenant_id(tenant)?;
        let run = match self.inner.find_task(&tenant).await? {
            runtime::Found::Here(run) => run,
            runtime::Found::Elsewhere(there) => return Ok(TaskInfo::elsewhere(*there)),
        };
        let view = self.inner.view(&run).await?;
        TaskInfo::of(view).ok_or_else(|| runtime::Error::TaskNotFound { tenant }.into())
    }

    /// Whether a tenant's task has come far enough for a retry to go on from somewhere else than its start.
    ///
    /// # Errors
    /// If it has no task, or it cannot be read now.
    pub async fn has_checkpoint(&self, tenant: &str) -> Result<bool, Error> {
        Ok(self.task_status_by_tenant(tenant).await?.checkpoint.is_some())
    }

    /// Has a tenant's task that has failed, was cancelled or is interrupted begin again: from its checkpoint, or from its start. Of its plan, only this task is run. When it
    /// returns, that is on record.
    ///
    /// # Errors
    /// If it has no task, or its status does not allow it.
    pub async fn retry_task_by_tenant(&self, tenant: &str, from_checkpoint: bool) -> Result<(), Error> {
        let retry = self.retry_task(tenant).await?;
        if from_checkpoint { retry.await } else { retry.from_start().await }
    }

    /// The same, with more to be said about it. When it is awaited, a task of an instance that is gone becomes this one's.
    ///
    /// # Errors
    /// If it has no task, or another instance has it.
    pub async fn retry_task(&self, tenant: &str) -> Result<Retry, Error> {
        let tenant = tenant_id(tenant)?;
        match self.inner.find_task(&tenant).await? {
            runtime::Found::Here(run) => Ok(self.run(run.as_str())?.retry()),
            runtime::Found::Elsewhere(there) => Ok(self.run(there.task.task.as_str())?.retry().taking_up(tenant)),
        }
    }

    /// Takes a tenant's task up whose instance is gone, or that was handed over: it is this one's then and interrupted, to be retried, rolled back or cancelled. One
    /// that is this instance's already is left as it is.
    ///
    /// # Errors
    /// If it has no task, another instance has it, or its definition is not known here.
    pub async fn take_up(&self, tenant: &str) -> Result<Run, Error> {
        let task = self.inner.own_task(&tenant_id(tenant)?, &Origin::default()).await?;
        self.run(task.as_str())
    }

    /// Gives a tenant's task up that is not under way, so that another instance can go on with it. Await it; say [why](Act::why).
    pub fn hand_over(&self, tenant: &str) -> Act {
        Act::new(&self.inner, tenant_id(tenant).map(Verb::HandOver))
    }

    /// The run that a tenant's last task is.
    ///
    /// # Errors
    /// If it has none, or it cannot be read now.
    pub async fn task_of(&self, tenant: &str) -> Result<Run, Error> {
        let task: RunId = self.inner.latest_task(&tenant_id(tenant)?).await?;
        self.run(task.as_str())
    }

    /// The locks that somebody has, in the order of their tenants.
    ///
    /// # Errors
    /// If they cannot be read now.
    pub async fn locks(&self) -> Result<Vec<LockRow>, Error> {
        const PAGE: usize = 1000;
        let mut locks: Vec<LockRow> = Vec::new();
        loop {
            let page = self.inner.locks(locks.last().map(|lock| &lock.tenant), PAGE).await?;
            let last = page.len() < PAGE;
            locks.extend(page);
            if last {
                return Ok(locks);
            }
        }
    }

    /// Takes the lock of a tenant away from its holder, who is interrupted if it is under way. Await it; say [why](Act::why).
    pub fn break_lock(&self, tenant: &str) -> Act {
        Act::new(&self.inner, tenant_id(tenant).map(Verb::BreakLock))
    }
}

impl Run {
    /// Has what a task did undone, newest first. Only tasks of plans can be rolled back; a workflow undoes what it did when it is [cancelled](Run::cancel).
    pub fn roll_back(&self) -> Act {
        Act::new(&self.engine, Ok(Verb::RollBack(self.id.clone())))
    }
}

fn tenant_id(tenant: &str) -> Result<TenantId, runtime::Error> {
    Ok(TenantId::new(tenant)?)
}
