//! Plans and tasks that instances share: looked at wherever they are, and taken up here if their instance is gone.

use crate::app::App;
use crate::problem::Problem;
use crate::shapes::{Lock, Plan, Task};
use futures_util::future::join_all;
use steadfast_kernel::{InstanceId, Origin, RunId, TaskStatus, TenantId, Timestamp, WorkflowName, code};
use steadfast_runtime::clock::{Clock, SystemClock};
use steadfast_runtime::{self as runtime, Elsewhere, ElsewherePlan, Found, PlanSpec, Wanted};
use steadfast_store::{LockRow, SharedCheckpoint, SharedTask};

/// How many tasks of another instance's plan are looked at for how far they have come, and how many of them at once.
const LOOK_MAX: usize = 1000;
const AT_ONCE: usize = 32;

impl App {
    pub(crate) fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    /// Who this is, if tenants are shared. Where Redis is a mirror only, nobody else has any.
    pub(crate) fn instance(&self) -> Option<InstanceId> {
        self.engine.sharing().filter(|health| !health.mirror_only).map(|health| health.instance)
    }

    /// A lock that a task of this instance has.
    pub(crate) fn lock(&self, row: &LockRow) -> Lock {
        Lock::of(row, self.instance().as_ref())
    }

    /// The tenant's latest task, to do something with it. If its instance is gone, this one takes it up first.
    pub(crate) async fn own_task(&self, tenant: &TenantId, wanted: Wanted, origin: &Origin) -> Result<RunId, Problem> {
        let origin = Origin { command: None, ..origin.clone() }; // the key is that of what follows: it has not been done when the task is here
        Ok(self.engine.own_task_to(tenant, Some(wanted), &origin).await?)
    }

    /// The tenant's latest task, to do something with it that only its own instance can do.
    pub(crate) async fn task_here(&self, tenant: &TenantId) -> Result<RunId, Problem> {
        match self.engine.find_task(tenant).await? {
            Found::Here(task) => Ok(task),
            Found::Elsewhere(there) => Err(not_here(&there)),
        }
    }

    /// Gives a tenant's task up, for another instance to go on with it.
    pub(crate) async fn hand_over(&self, tenant: &TenantId, origin: Origin) -> Result<Task, Problem> {
        match self.engine.find_task(tenant).await? {
            Found::Here(_) => drop(self.engine.hand_over(tenant, origin).await?),
            Found::Elsewhere(there) => self.was_handed_over(&there).await?,
        }
        match self.engine.find_task(tenant).await? {
            Found::Here(task) => self.task(&task).await,
            Found::Elsewhere(there) => Ok(Task::elsewhere(&there, self.now())),
        }
    }

    /// A task that this instance has handed over before needs nothing more, whoever has it now.
    async fn was_handed_over(&self, there: &Elsewhere) -> Result<(), Problem> {
        let own = self.engine.view(&there.task.task).await.ok().and_then(|view| view.task);
        match own {
            Some(own) if own.status == TaskStatus::HandedOver => Ok(()),
            _ => Err(not_here(there)),
        }
    }

    /// A plan of another instance, with how far its tasks have come.
    pub(crate) async fn plan_elsewhere(&self, there: &ElsewherePlan) -> Plan {
        let spec = self.spec_of(&there.plan.definition, &there.plan.definition_hash);
        let on_their_way = there.tasks.iter().filter(|task| is_on_its_way(there, task)).take(LOOK_MAX);
        let on_their_way: Vec<_> = on_their_way.map(|task| (task.tenant.clone(), task.task.clone())).collect();
        let mut checkpoints = Vec::new();
        for part in on_their_way.chunks(AT_ONCE) {
            let found = join_all(part.iter().map(|(tenant, task)| self.checkpoint_of(tenant, task))).await;
            checkpoints.extend(found.into_iter().flatten());
        }
        Plan::elsewhere(there, spec.as_ref(), &checkpoints)
    }

    async fn checkpoint_of(&self, tenant: &TenantId, task: &RunId) -> Option<(RunId, SharedCheckpoint)> {
        match self.engine.find_task(tenant).await {
            Ok(Found::Elsewhere(there)) if there.task.task == *task => Some((there.task.task, there.checkpoint?)),
            _ => None, // the tenant has another task by now, or that cannot be seen
        }
    }

    /// What a definition says, if that version of it is here.
    fn spec_of(&self, definition: &str, hash: &str) -> Option<PlanSpec> {
        let name = WorkflowName::new(definition).ok()?;
        let (_, registered) = self.engine.workflows().into_iter().find(|(known, _)| *known == name)?;
        registered.code.plan_of(hash)
    }
}

/// Of these a checkpoint says how far they have come; of the others their status does.
fn is_on_its_way(there: &ElsewherePlan, task: &SharedTask) -> bool {
    task.started_at.is_some() && !matches!(there.status_of(task), TaskStatus::Completed | TaskStatus::RolledBack)
}

/// Why something cannot be done here with a task of another instance, and what can.
fn not_here(there: &Elsewhere) -> Problem {
    let task = &there.task.task;
    match &there.task.owner {
        Some(owner) if there.owner_lives => {
            runtime::Error::Elsewhere { what: format!("task {task}"), instance: Some(owner.clone()) }.into()
        }
        Some(owner) => {
            let why = format!("task {task} was instance {owner}'s, which is gone, and is interrupted: retry it, and it goes on here");
            Problem::new(code::ELSEWHERE, why)
        }
        None => Problem::new(code::ELSEWHERE, format!("task {task} was handed over, and nobody has it: retry it, and it goes on here")),
    }
}
