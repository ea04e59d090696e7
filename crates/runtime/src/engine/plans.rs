//! What can be done with plans, their tasks and the locks of tenants.

use super::{Engine, PAGE, taken};
use crate::error::Error;
use crate::host::PlanSpec;
use crate::shard::{Request, RunView};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use steadfast_kernel::plan::TENANTS_MAX;
use steadfast_kernel::run::Verb;
use steadfast_kernel::{
    Answer, Command, EntityId, OperatePlan, Origin, Payload, Plan, PlanCreated, PlanId, PlanStatus, Refusal, RunId, TaskStatus, TenantId,
    WorkflowName,
};
use steadfast_store::{LockRow, PlanCursor, PlanFilter, PlanRow, RunRow, ShardId, TaskCount};

/// How often it is looked whether all tasks of a new plan are there.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How many bytes the tasks of a plan may be given in all.
const INPUT_BYTES_MAX: usize = 256 << 20;

/// How long a caller is kept waiting for that.
const LOOK_FOR: Duration = Duration::from_secs(10);

/// What plan is to be created.
#[derive(Clone, Debug)]
pub struct CreatePlan {
    /// The registered name.
    pub definition: String,
    /// Whom it is for, in order.
    pub tenants: Vec<String>,
    /// The id; one is made if there is none. It makes the creation idempotent.
    pub id: Option<String>,
    /// What all of its tasks are given.
    pub input: Payload,
    /// How many tasks may be under way at once; as the definition says if there is nothing here.
    pub max_concurrency: Option<u32>,
    /// Who wants it, and why.
    pub origin: Origin,
}

impl Engine {
    /// Creates a plan with a task for every tenant, or finds the one of that id. Nothing of it begins before it is started. The plan is durable when this
    /// returns, and its tasks can be looked up.
    ///
    /// # Errors
    /// If there is no such definition, the plan cannot be, tenants are locked by others, or the id is taken by another plan.
    pub async fn create_plan(&self, plan: CreatePlan) -> Result<(PlanId, Answer), Error> {
        Self::check(&plan.origin)?;
        self.check_size(&plan.input)?;
        let id = match &plan.id {
            Some(id) => PlanId::new(id)?,
            None => PlanId::new(self.parts.chance.id(self.parts.clock.now())?.as_str())?,
        };
        let mut seen = BTreeSet::new();
        let mut tenants = plan.tenants.iter().map(TenantId::new).collect::<Result<Vec<_>, _>>()?;
        tenants.retain(|tenant| seen.insert(tenant.clone())); // one who is named twice is one
        let (workflow, PlanSpec { stages, mut settings, .. }, version) = self.spec(&plan)?;
        settings.max_concurrency = plan.max_concurrency.unwrap_or(settings.max_concurrency);
        let invalid = |why: String| Err(Error::InvalidPlan { why });
        match () {
            () if tenants.is_empty() => return invalid("a plan needs at least one tenant".into()),
            () if tenants.len() > TENANTS_MAX => return invalid(format!("a plan may have {TENANTS_MAX} tenants, not {}", tenants.len())),
            () if tenants.len().saturating_mul(plan.input.len()) > INPUT_BYTES_MAX => {
                let why = "the variables are kept with every task, and are too large for so many tenants: keep large data elsewhere and pass its address";
                return invalid(why.into());
            }
            () if settings.max_concurrency == 0 => return invalid("max_concurrency must be at least 1".into()),
            () => {}
        }
        self.is_free(&id).await?;
        let (locked, seed) = (self.locked(&id, &tenants).await?, self.parts.chance.seed(&RunId::new(id.as_str())?));
        let definition = plan.definition;
        let (input, origin) = (plan.input, plan.origin);
        let created = PlanCreated { workflow, definition, version, stages, tenants, skipped: Vec::new(), settings, seed, origin, input };
        let command = steadfast_kernel::CreatePlan { created: Box::new(created), locked };
        let answer = self.tell_plan(&id, Command::CreatePlan(Box::new(command))).await?;
        self.await_tasks(&id).await?;
        Ok((id, answer))
    }

    fn spec(&self, plan: &CreatePlan) -> Result<(WorkflowName, PlanSpec, Option<String>), Error> {
        let name = WorkflowName::new(&plan.definition)?;
        let unknown = || Error::UnknownPlan { name: plan.definition.clone(), known: self.plan_names() };
        let registered = self.parts.registry.get(&name).filter(|registered| registered.is_plan).ok_or_else(unknown)?;
        let terms = taken(&registered, &plan.input)?;
        let spec = terms.plan.ok_or_else(unknown)?;
        Ok((name, *spec, terms.definition))
    }

    fn plan_names(&self) -> Vec<String> {
        let plans = self.workflows().into_iter().filter(|(_, registered)| registered.is_plan);
        plans.map(|(name, _)| name.to_string()).collect()
    }

    /// Those tenants whose lock another plan has.
    async fn locked(&self, plan: &PlanId, tenants: &[TenantId]) -> Result<Vec<(TenantId, String)>, Error> {
        let now = self.parts.clock.now();
        let locks = self.store()?.locks_of(tenants).await.map_err(Error::from_store)?;
        let others = locks.into_iter().filter(|lock| lock.lease.plan != *plan && lock.lease.expires_at > now);
        let mut locked: Vec<_> = others.map(|lock| (lock.tenant, lock.lease.holder())).collect();
        let elsewhere = self.locked_elsewhere(tenants, |holder| holder.plan == *plan).await?;
        locked.extend(elsewhere.into_iter().map(|lock| (lock.tenant, lock.holder.to_string())));
        Ok(locked)
    }

    async fn await_tasks(&self, plan: &PlanId) -> Result<(), Error> {
        let until = self.parts.clock.now().saturating_add(LOOK_FOR);
        while self.plan(plan).await?.status() == PlanStatus::Created && self.parts.clock.now() < until {
            self.parts.clock.sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Has a plan start, pause, resume, end or be rolled back. It is on record when this returns.
    ///
    /// # Errors
    /// If there is no such plan, its status does not allow it, or tenants are locked by others when it is to start.
    pub async fn operate_plan(&self, plan: &PlanId, verb: Verb, origin: Origin) -> Result<(), Error> {
        Self::check(&origin)?;
        let locked = match verb {
            Verb::Start => {
                let state = match self.plan(plan).await {
                    Err(refusal @ Error::Refused(Refusal::PlanNotFound { .. })) => return Err(self.not_here(plan, refusal).await),
                    state => state?,
                };
                self.locked(plan, &state.tasks.iter().map(|task| task.tenant.clone()).collect::<Vec<_>>()).await?
            }
            _ => Vec::new(),
        };
        match self.tell_plan(plan, Command::OperatePlan(OperatePlan { verb, origin, locked })).await {
            Err(refusal @ Error::Refused(Refusal::PlanNotFound { .. })) => Err(self.not_here(plan, refusal).await),
            answer => answer.map(drop),
        }
    }

    async fn tell_plan(&self, plan: &PlanId, command: Command) -> Result<Answer, Error> {
        self.tell_entity(EntityId::Plan(plan.clone()), command).await
    }

    /// Looks at a plan.
    ///
    /// # Errors
    /// If there is no such plan, or it cannot be read.
    pub async fn plan(&self, plan: &PlanId) -> Result<Plan, Error> {
        self.look(|reply| Request::Plan { plan: plan.clone(), reply }).await.map(|plan| *plan)
    }

    /// Plans that the filter lets through, newest first, from the one after `after`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn plans(&self, filter: &PlanFilter, after: Option<&PlanCursor>, limit: usize) -> Result<Vec<PlanRow>, Error> {
        self.store()?.plans(filter, after, limit).await.map_err(Error::from_store)
    }

    /// How many tasks of these plans there are of each status.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn task_counts(&self, plans: &[PlanId]) -> Result<Vec<TaskCount>, Error> {
        self.store()?.task_counts(plans).await.map_err(Error::from_store)
    }

    /// The tasks of a plan, in the order in which it names its tenants. Those that are being made are left out.
    ///
    /// # Errors
    /// If there is no such plan, or they cannot be read.
    pub async fn tasks(&self, plan: &PlanId) -> Result<Vec<RunRow>, Error> {
        let order = self.plan(plan).await?;
        let (store, mut rows) = (self.store()?, BTreeMap::<RunId, RunRow>::new());
        loop {
            let page = store
                .tasks(plan, rows.last_key_value().map(|(run, _)| run), PAGE)
                .await
                .map_err(Error::from_store)?;
            let last = page.len() < PAGE;
            rows.extend(page.into_iter().map(|row| (row.run.clone(), row)));
            if last {
                break;
            }
        }
        Ok(order.tasks.iter().filter_map(|task| rows.remove(&task.run)).collect())
    }

    /// A tenant's task that was made last; if nothing of that has begun, the one that has the tenant's lock.
    ///
    /// # Errors
    /// If it has none, or it cannot be read.
    pub async fn latest_task(&self, tenant: &TenantId) -> Result<RunId, Error> {
        let row = self.store()?.latest_task(tenant).await.map_err(Error::from_store)?;
        let row = row.ok_or_else(|| Error::TaskNotFound { tenant: tenant.clone() })?;
        let never_began = row.task.is_some_and(|task| task.status == TaskStatus::Pending && task.started_at.is_none());
        match self.lock(tenant).await?.filter(|_| never_began) {
            Some(lock) => Ok(lock.lease.task),
            None => Ok(row.run),
        }
    }

    /// A tenant's task that was made last, as it stands now.
    ///
    /// # Errors
    /// If it has none, or it cannot be read.
    pub async fn task_of(&self, tenant: &TenantId) -> Result<RunView, Error> {
        self.view(&self.latest_task(tenant).await?).await
    }

    /// Has what a task did undone, newest first. It is on record when this returns.
    ///
    /// # Errors
    /// If there is no such run, it is no task, or nothing of it can be undone.
    pub async fn roll_back(&self, run: &RunId, origin: Origin) -> Result<(), Error> {
        Self::check(&origin)?;
        self.may_have_its_lock(run).await?;
        self.tell(run, Command::RollBackRun(origin)).await.map(drop)
    }

    /// Refuses what needs the lock of a tenant that another task has by now.
    pub(super) async fn may_have_its_lock(&self, run: &RunId) -> Result<(), Error> {
        let store = self.store()?;
        let row = store.run(run).await.map_err(Error::from_store)?;
        let Some((tenant, task)) = row.and_then(|row| Some((TenantId::new(row.tenant?).ok()?, row.task?))) else { return Ok(()) };
        let now = self.parts.clock.now();
        let lock = self.lock(&tenant).await?.filter(|lock| lock.lease.task != *run && lock.lease.expires_at > now);
        if let Some(lock) = lock {
            return Err(Refusal::TenantsLocked { plan: task.plan, locked: vec![(tenant, lock.lease.holder())] }.into());
        }
        match self.locked_elsewhere(std::slice::from_ref(&tenant), |holder| holder.task == *run).await?.pop() {
            Some(lock) if lock.holder.task == *run => {
                Err(Error::Elsewhere { what: format!("task {run}"), instance: Some(lock.holder.instance) })
            }
            Some(lock) => Err(Refusal::TenantsLocked { plan: task.plan, locked: vec![(tenant, lock.holder.to_string())] }.into()),
            None => Ok(()),
        }
    }

    /// Locks that somebody has, in the order of their tenants, from the one after `after`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn locks(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<LockRow>, Error> {
        self.store()?.locks(after, limit).await.map_err(Error::from_store)
    }

    /// The lock of a tenant, if somebody has it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn lock(&self, tenant: &TenantId) -> Result<Option<LockRow>, Error> {
        let locks = self.store()?.locks_of(std::slice::from_ref(tenant)).await.map_err(Error::from_store)?;
        Ok(locks.into_iter().next())
    }

    /// Takes a lock away from its holder, who is interrupted if it is under way. It is on record when this returns.
    ///
    /// # Errors
    /// If nobody has it.
    pub async fn break_lock(&self, tenant: &TenantId, origin: Origin) -> Result<(), Error> {
        Self::check(&origin)?;
        let entity = EntityId::Lock(tenant.clone());
        match self.tell_entity(entity, Command::BreakLock(origin.clone())).await {
            Err(Error::Refused(Refusal::LockNotFound { .. })) => self.break_elsewhere(tenant, origin).await,
            broken => broken.map(drop),
        }
    }
}

/// Every plan of a shard that a restart has to pause.
pub(super) async fn under_way(store: &dyn steadfast_store::Store, shard: ShardId) -> Result<Vec<PlanId>, Error> {
    let mut found = Vec::new();
    for status in [PlanStatus::Running, PlanStatus::Paused] {
        let filter = PlanFilter { shard: Some(shard), status: Some(status), definition: None };
        let mut after: Option<PlanCursor> = None;
        loop {
            let page = store.plans(&filter, after.as_ref(), PAGE).await.map_err(Error::from_store)?;
            let Some(last) = page.last() else { break };
            after = Some(PlanCursor::from(last));
            found.extend(page.into_iter().map(|row| row.plan));
        }
    }
    Ok(found)
}
