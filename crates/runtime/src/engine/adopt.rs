//! A task goes from one instance to another: taken up because its owner is gone, or handed over.
//!
//! Tested by `crates/sdk/tests/it/instances/flow.rs`.
//! Tested by `crates/sdk/tests/it/instances/hand_over.rs`.
//! Tested by `crates/sdk/tests/it/instances/owners.rs`.
//! Tested by `crates/sdk/tests/it/instances/undo.rs`.

use super::{Elsewhere, Engine, Found};
use crate::commons::{Common, Note, SharingState};
use crate::error::Error;
use crate::host::PlanSpec;
use std::time::Duration;
use steadfast_kernel::{
    AdoptRun, Answer, Command, EntityId, HandOver, InstanceId, Origin, Payload, Recovery, Refusal, RunId, RunOptions, StartRun,
    TaskOptions, TaskStatus, TenantId, WorkflowName,
};
use steadfast_store::{CommonsError, LockHolder, SharedCheckpoint, SharedPlan, SharedTask, Write, Wrote};

/// What is to be done with a task that is taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It goes on from its checkpoint.
    Retry,
    /// It begins from its start.
    RetryFromStart,
    /// What it did is undone.
    RollBack,
    /// It is called off.
    Cancel,
}

impl Found {
    /// It, if this instance has it; otherwise who does.
    fn here(self) -> Result<RunId, Error> {
        match self {
            Found::Here(run) => Ok(run),
            Found::Elsewhere(there) => {
                Err(Error::Elsewhere { what: format!("task {}", there.task.task), instance: there.task.owner.clone() })
            }
        }
    }
}

impl Engine {
    /// The tenant's task that was made last, to do something with it: if its owner is gone, this instance takes it up.
    ///
    /// # Errors
    /// [`Error::Elsewhere`] if another instance has it; if it has none; if it cannot be taken up here.
    pub async fn own_task(&self, tenant: &TenantId, origin: &Origin) -> Result<RunId, Error> {
        self.own_task_to(tenant, None, origin).await
    }

    /// The same, to do that with it. What its owner would have refused is refused here, and nothing has changed then.
    ///
    /// # Errors
    /// As [`own_task`](Self::own_task); if it stands so that this cannot be done with it.
    pub async fn own_task_to(&self, tenant: &TenantId, wanted: Option<Wanted>, origin: &Origin) -> Result<RunId, Error> {
        Self::check(origin)?;
        match self.find_task(tenant).await? {
            Found::Elsewhere(there) if !there.owner_lives => {
                // It is not left half-done if nobody waits for it any more.
                let (engine, tenant, origin) = (self.clone(), tenant.clone(), origin.clone());
                let taken_up = tokio::spawn(async move { engine.take_up(&tenant, wanted, origin).await });
                taken_up.await.unwrap_or(Err(Error::Stopped))
            }
            found => found.here(),
        }
    }

    async fn take_up(&self, tenant: &TenantId, wanted: Option<Wanted>, origin: Origin) -> Result<RunId, Error> {
        let Some(common) = self.in_common() else { return Err(Error::TaskNotFound { tenant: tenant.clone() }) };
        let _one_after_the_other = common.adopting.lock().await;
        match self.find_task(tenant).await? {
            Found::Elsewhere(there) if !there.owner_lives => self.adopt(common, *there, wanted, origin).await,
            found => found.here(),
        }
    }

    /// Takes a task up whose owner is gone. It is interrupted then, with the checkpoint that it had.
    async fn adopt(&self, common: &Common, there: Elsewhere, wanted: Option<Wanted>, origin: Origin) -> Result<RunId, Error> {
        let (commons, me) = (&common.sharing.commons, &common.sharing.instance);
        let Elsewhere { task, lock, .. } = there;
        let unknown = || Error::DefinitionNotHere { name: task.definition.clone(), hash: task.definition_hash.clone() };
        let (workflow, spec) = self.spec_of(&task).ok_or_else(unknown)?;
        let plan = commons.plan(&task.plan).await?.ok_or_else(|| Refusal::PlanNotFound { plan: task.plan.clone() })?;
        may(&task, wanted)?;
        let elsewhere = |instance| Error::Elsewhere { what: format!("task {}", task.task), instance };
        let locked = |holder: LockHolder| {
            if holder.task == task.task {
                return elsewhere(Some(holder.instance)); // it was taken up meanwhile
            }
            let holder = (task.tenant.clone(), holder.to_string());
            Error::Refused(Refusal::TenantsLocked { plan: task.plan.clone(), locked: vec![holder] })
        };
        let instead_of = lock.map(|lock| lock.holder);
        if let Some(holder) = &instead_of {
            let taken_up = holder.instance != *me && task.owner.as_ref() != Some(&holder.instance) && holder.fence > task.fence;
            if holder.task != task.task || (taken_up && !commons.alive(std::slice::from_ref(&holder.instance)).await?.is_empty()) {
                return Err(locked(holder.clone()));
            }
        }
        let above = instead_of.as_ref().map_or(0, |holder| holder.fence).max(task.fence);
        let fence = match first(commons.send(vec![Write::NextFence { tenant: task.tenant.clone(), above }]).await?)? {
            Wrote::Fence(fence) => fence,
            other => return Err(unexpected(&other)),
        };
        let holder = LockHolder { plan: task.plan.clone(), task: task.task.clone(), instance: me.clone(), fence };
        let take = Write::TakeLock { tenant: task.tenant.clone(), holder: holder.clone(), lease: spec.settings.lease, instead_of };
        let note = |note: Note| drop(common.notes.upgrade().map(|notes| notes.send(note)));
        let taken = commons.send(vec![take]).await.map_err(Error::from).and_then(first);
        let tenant = task.tenant.clone();
        let adopted = match taken {
            Ok(Wrote::Done) => self.adopt_with(common, task, (workflow, spec, plan), (holder.clone(), wanted, origin)).await,
            Ok(Wrote::Held(other)) => return Err(locked(other)),
            Ok(other) => Err(unexpected(&other)),
            Err(error) => Err(error), // it may have been taken all the same
        };
        match &adopted {
            Ok(_) => note(Note::Adopted { tenant, holder }),
            Err(_) => note(Note::LeftOver(vec![(tenant, holder)])),
        }
        adopted
    }

    /// The lock is this instance's; now the task is, too.
    async fn adopt_with(
        &self,
        common: &Common,
        task: SharedTask,
        (workflow, spec, plan): (WorkflowName, PlanSpec, SharedPlan),
        (holder, wanted, origin): (LockHolder, Option<Wanted>, Origin),
    ) -> Result<RunId, Error> {
        let (commons, me, fence) = (&common.sharing.commons, &common.sharing.instance, holder.fence);
        let adopt = Write::Adopt { task: task.task.clone(), from: (task.owner.clone(), task.fence), to: Some(me.clone()), fence };
        let adopted = first(commons.send(vec![adopt]).await?)?;
        if let Wrote::NotYours { owner, .. } = adopted {
            return Err(Error::Elsewhere { what: format!("task {}", task.task), instance: owner });
        }
        let checkpoint = commons.checkpoint(&task.task).await?; // nobody else saves one from here on
        let done = done(&task, checkpoint.as_ref(), wanted, spec.stages.len());
        if let Some(checkpoint) = checkpoint.clone().map(|checkpoint| SharedCheckpoint { fence, version: 0, ..checkpoint }) {
            // From here on the old owner can save none, also if it comes back; this instance counts on its own.
            let task = task.task.clone();
            let save = match done {
                0 => Write::DropCheckpoint { task, fence },
                _ => Write::Checkpoint { task, checkpoint: Box::new(checkpoint) },
            };
            commons.send(vec![save]).await?;
        }
        tracing::info!(task = %task.task, from = task.owner.as_ref().map(InstanceId::as_str), fence, "a task is taken up");
        let run = task.task.clone();
        let command = self.adoption(task, (workflow, spec), (done, checkpoint, plan), (fence, origin)).await?;
        match self.tell_entity(EntityId::Run(run.clone()), Command::AdoptRun(Box::new(command))).await? {
            Answer::Created => Ok(run),
            _ => Err(Refusal::RunExists { run }.into()),
        }
    }

    async fn adoption(
        &self,
        task: SharedTask,
        (workflow, spec): (WorkflowName, PlanSpec),
        (done, checkpoint, plan): (usize, Option<SharedCheckpoint>, SharedPlan),
        (fence, origin): (u64, Origin),
    ) -> Result<AdoptRun, Error> {
        let alone = self.store()?.plan(&task.plan).await.map_err(Error::from_store)?.is_none();
        let (settings, half_undone) = (spec.settings, is_half_undone(task.status));
        let options = TaskOptions {
            plan: task.plan,
            tenant: task.tenant.clone(),
            stages: spec.stages,
            lease: settings.lease,
            on_failure: settings.on_failure,
            conflict: settings.conflict,
        };
        let options = RunOptions {
            tenant: Some(task.tenant.to_string()),
            recovery: Recovery::Manual,
            definition: (!task.definition_hash.starts_with("code-")).then_some(task.definition_hash),
            task: Some(Box::new(options)),
            ..RunOptions::default()
        };
        let seed = self.parts.chance.seed(&task.task);
        Ok(AdoptRun {
            start: StartRun { run: task.task, workflow, input: plan.vars, seed, deadline: None, options },
            from: task.owner,
            origin,
            started_at: task.started_at,
            fence,
            done: spec.undoable.into_iter().take(done).collect(),
            half_undone,
            data: checkpoint.map_or_else(|| Payload::json("{}"), |checkpoint| checkpoint.data),
            alone,
        })
    }

    /// Gives a tenant's task up, so that another instance can go on with it at once.
    ///
    /// # Errors
    /// If tenants are not shared, there is no such task here, it is under way, or what is shared cannot be written.
    pub async fn hand_over(&self, tenant: &TenantId, origin: Origin) -> Result<RunId, Error> {
        Self::check(&origin)?;
        let run = match self.find_task(tenant).await? {
            Found::Elsewhere(there) if there.task.owner.is_none() => return Ok(there.task.task), // it is given up already
            found => found.here()?,
        };
        let Some(common) = self.in_common() else {
            return Err(Error::InvalidSetting("there is nobody to hand a task over to: no instance shares tenants with this one".into()));
        };
        let view = self.view(&run).await?;
        let status = view.task.as_ref().map(|task| task.status);
        match status {
            Some(TaskStatus::Running | TaskStatus::RollingBack | TaskStatus::Waiting) => {
                let (task, status) = (run, status.unwrap_or(TaskStatus::Running));
                return Err(Refusal::TaskStatus { task, status, what_to_do: "pause it, and hand it over when it has paused".into() }.into());
            }
            Some(TaskStatus::Completed | TaskStatus::RolledBack) => {
                let (task, status) = (run, status.unwrap_or(TaskStatus::Completed));
                return Err(Refusal::TaskStatus { task, status, what_to_do: "there is nothing to go on with".into() }.into());
            }
            _ => {}
        }
        self.shared_now().await?;
        let there = common.sharing.commons.tasks(std::slice::from_ref(&run)).await?.pop();
        if let Some(there) = there.filter(|there| there.owner.as_ref() == Some(&common.sharing.instance)) {
            let give = Write::Adopt { task: run.clone(), from: (there.owner, there.fence), to: None, fence: there.fence };
            if let Wrote::NotYours { owner, .. } = first(common.sharing.commons.send(vec![give]).await?)? {
                return Err(Error::Elsewhere { what: format!("task {run}"), instance: owner });
            }
        }
        self.tell(&run, Command::HandOverRun(HandOver { to: None, origin })).await?;
        Ok(run)
    }

    /// Waits until others know what is known here, unless that cannot be now.
    async fn shared_now(&self) -> Result<(), Error> {
        match self.sharing().map(|health| health.state) {
            Some(SharingState::Away { why, .. }) => Err(Error::SharingAway { why }),
            Some(_) => {
                let patience = self.in_common().map_or(Duration::ZERO, |common| common.sharing.patience);
                tokio::select! {
                    biased;
                    () = self.shared() => Ok(()),
                    () = self.parts.clock.sleep(patience) => Err(Error::SharingAway { why: "it does not answer in time".into() }),
                }
            }
            None => Ok(()),
        }
    }
}

/// Some of what it did may be undone, and it is not known what.
fn is_half_undone(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::RollingBack | TaskStatus::RollbackFailed)
}

/// Refuses what the owner of a task would have refused.
fn may(task: &SharedTask, wanted: Option<Wanted>) -> Result<(), Refusal> {
    let what_to_do = match (wanted, task.status) {
        (Some(Wanted::Retry), TaskStatus::Completed) => "it has done all of its stages: retry it from its start",
        (Some(Wanted::Retry), status) if is_half_undone(status) => {
            "some of what it did is undone: roll it back again, or retry it from its start"
        }
        (Some(Wanted::RollBack), TaskStatus::RolledBack) => "it is rolled back already",
        (Some(Wanted::Cancel), TaskStatus::Completed | TaskStatus::Cancelled | TaskStatus::RolledBack) => {
            "it has ended; retry it, or roll it back"
        }
        _ => return Ok(()),
    };
    Err(Refusal::TaskStatus { task: task.task.clone(), status: task.status, what_to_do: what_to_do.into() })
}

/// How many stages are done: no checkpoint says that of the last one, and none counts that was undone.
fn done(task: &SharedTask, checkpoint: Option<&SharedCheckpoint>, wanted: Option<Wanted>, stages: usize) -> usize {
    match task.status {
        TaskStatus::Completed => stages,
        TaskStatus::RolledBack => 0,
        status if is_half_undone(status) && wanted == Some(Wanted::RetryFromStart) => 0,
        _ => checkpoint.map_or(0, |checkpoint| checkpoint.index as usize + 1),
    }
}

fn first(wrote: Vec<Wrote>) -> Result<Wrote, Error> {
    match wrote.into_iter().next() {
        Some(Wrote::Foreign { key }) => Err(CommonsError::Foreign { key }.into()),
        Some(wrote) => Ok(wrote),
        None => Err(Error::SharingAway { why: "it gave no answer".into() }),
    }
}

fn unexpected(wrote: &Wrote) -> Error {
    Error::SharingAway { why: format!("it gave an answer that cannot be: {wrote:?}") }
}
