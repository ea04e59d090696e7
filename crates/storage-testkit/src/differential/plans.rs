//! Generates random plans, tasks and locks, and reads all of them back.

use super::Seen;
use super::chance::{Chance, IDS};
use std::time::Duration;
use steadfast_kernel::{Lease, PlanId, PlanStatus, RunId, TaskStatus, TenantId, Timestamp};
use steadfast_store::{LockChange, LockRow, PlanCursor, PlanFilter, PlanRow, RunRow, Store, TaskCount, TaskRow};

/// Few enough to meet. The last ones have no tasks.
const PLANS: [&str; 6] = ["a", "a-1", "B", "b", "c", "plan/a"];

/// One has many runs that are no tasks, and some have none.
const TENANTS: [&str; 4] = ["acme", "b", "B", "a/b"];

const DEFINITIONS: [&str; 2] = ["bill", "Bill"];

/// What is asked for beside everything that there is.
pub(super) struct Asked {
    pub(super) filters: [PlanFilter; 2],
    pub(super) counted: Vec<PlanId>,
    pub(super) tenants: Vec<TenantId>,
}

/// What a store answers. Lists are read in two pages.
#[derive(Debug, PartialEq)]
pub(super) struct Plans {
    plan: Vec<Option<PlanRow>>,
    plans: Vec<[Vec<PlanRow>; 2]>,
    counts: Vec<TaskCount>,
    tasks: Vec<[Vec<RunRow>; 2]>,
    latest: Vec<Option<RunRow>>,
    locks_of: Vec<LockRow>,
    locks: [Vec<LockRow>; 2],
}

impl Plans {
    pub(super) async fn of(store: &impl Store, Asked { filters, counted, tenants }: &Asked, page: usize) -> Self {
        let mut all = Plans {
            plan: vec![],
            plans: vec![],
            counts: store.task_counts(counted).await.unwrap(),
            tasks: vec![],
            latest: vec![],
            locks_of: store.locks_of(tenants).await.unwrap(),
            locks: locks(store, page).await,
        };
        for filter in filters {
            all.plans.push(plans(store, filter, page).await);
        }
        for plan in PLANS.map(|id| PlanId::new(id).unwrap()) {
            all.plan.push(store.plan(&plan).await.unwrap());
            all.tasks.push(tasks(store, &plan, page).await);
        }
        for tenant in TENANTS {
            all.latest.push(store.latest_task(&TenantId::new(tenant).unwrap()).await.unwrap());
        }
        all
    }

    /// Notes what there was: answers and none, second pages and none.
    pub(super) fn note(&self, seen: &mut Seen) {
        let Plans { plan, plans, counts, tasks, latest, locks_of, locks } = self;
        plan.iter().for_each(|plan| seen.either("plan", plan.is_some()));
        plans.iter().for_each(|pages| seen.pages("plans", pages));
        seen.either("task_counts", !counts.is_empty());
        tasks.iter().for_each(|pages| seen.pages("tasks", pages));
        latest.iter().for_each(|task| seen.either("latest_task", task.is_some()));
        seen.either("locks_of", !locks_of.is_empty());
        seen.pages("locks", locks);
        if counts.iter().any(|count| count.tasks > 1) {
            seen.note("task_counts: several");
        }
    }
}

async fn plans(store: &impl Store, filter: &PlanFilter, page: usize) -> [Vec<PlanRow>; 2] {
    let rows = store.plans(filter, None, page).await.unwrap();
    let more = store.plans(filter, rows.last().map(PlanCursor::from).as_ref(), page).await.unwrap();
    [rows, more]
}

async fn tasks(store: &impl Store, plan: &PlanId, page: usize) -> [Vec<RunRow>; 2] {
    let rows = store.tasks(plan, None, page).await.unwrap();
    let more = store.tasks(plan, rows.last().map(|row| &row.run), page).await.unwrap();
    [rows, more]
}

async fn locks(store: &impl Store, page: usize) -> [Vec<LockRow>; 2] {
    let rows = store.locks(None, page).await.unwrap();
    let more = store.locks(rows.last().map(|row| &row.tenant), page).await.unwrap();
    [rows, more]
}

impl Chance {
    pub(super) fn plan_id(&mut self) -> PlanId {
        PlanId::new(self.one_of(&PLANS)).unwrap()
    }

    pub(super) fn tenant(&mut self) -> TenantId {
        TenantId::new(self.one_of(&TENANTS)).unwrap()
    }

    /// Small enough for equal ones.
    fn small(&mut self) -> u32 {
        u32::try_from(self.below(4)).unwrap()
    }

    pub(super) fn plan(&mut self) -> PlanRow {
        let status = self.one_of(&PlanStatus::ALL);
        PlanRow {
            shard: self.shard(),
            plan: self.plan_id(),
            definition: self.one_of(&DEFINITIONS).into(),
            status,
            why: self.maybe(Self::text),
            created_at: self.time(),
            started_at: self.maybe(Self::time),
            ended_at: if status.is_final() { Some(Timestamp::MAX) } else { self.maybe(Self::time) },
        }
    }

    pub(super) fn plan_filter(&mut self) -> PlanFilter {
        PlanFilter {
            shard: self.maybe(Self::shard),
            status: self.maybe(|chance| chance.one_of(&PlanStatus::ALL)),
            definition: self.maybe(|chance| chance.one_of(&DEFINITIONS).into()),
        }
    }

    pub(super) fn task(&mut self) -> TaskRow {
        TaskRow {
            plan: PlanId::new(self.one_of(&PLANS[..4])).unwrap(),
            status: self.one_of(&TaskStatus::ALL),
            stage: self.maybe(Self::small),
            completed: self.small(),
            checkpoint: self.maybe(Self::small),
            pause_requested: self.below(2) == 0,
            started_at: self.maybe(Self::time),
        }
    }

    pub(super) fn lock(&mut self) -> LockChange {
        let tenant = self.tenant();
        if self.below(3) == 0 {
            return LockChange::Remove(tenant);
        }
        let lease = Lease {
            plan: self.plan_id(),
            task: RunId::new(self.one_of(&IDS)).unwrap(),
            epoch: self.small(),
            fence: self.one_of(&[1, 1 << 40]),
            lease: Duration::from_micros(self.below(1 << 40)),
            expires_at: self.time(),
        };
        LockChange::Put(Box::new(LockRow { shard: self.shard(), tenant, lease, since: self.time(), waiting: self.small() }))
    }

    pub(super) fn asked_of_plans(&mut self) -> Asked {
        Asked { filters: [PlanFilter::default(), self.plan_filter()], counted: self.some(Self::plan_id), tenants: self.some(Self::tenant) }
    }
}
