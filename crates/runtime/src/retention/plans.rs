//! Plans whose time is over go, and their tasks with them: the tasks first and the plan last, so that whatever is left of it is found again.
//!
//! A plan stays while one of its tasks has not ended, or keeps its tenant's lock, or ended later than the plan's time allows. Nothing holds a plan while its tasks go one after another: a task
//! that somebody takes up again meanwhile is kept, and its plan with it.
//!
//! Tested by `crates/sdk/tests/it/plans/kept.rs`.

use super::{Agenda, HANDED, PAGE, PAUSE, Sweeper};
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_kernel::{EntityId, PlanId, PlanStatus, RunId, TenantId, Timestamp};
use steadfast_store::{Error, PlanCursor, PlanFilter, PlanRow, RunRow, Sweep};

/// What came of a look.
pub(super) enum Looked {
    /// So many plans are gone.
    Gone(usize),
    /// The shard does not want to now.
    NotNow,
    /// There is no shard any more.
    Over,
}

impl Sweeper {
    /// One look at the plans that have ended.
    pub(super) async fn look_at_plans(&self, agenda: &mut Agenda) -> Result<Looked, Error> {
        let mut gone = 0;
        let ends = [
            (PlanStatus::Completed, self.retention.completed),
            (PlanStatus::Failed, self.retention.failed),
            (PlanStatus::Cancelled, self.retention.cancelled),
        ];
        for (status, keep_for) in ends {
            let Some(keep_for) = keep_for else { continue };
            match self.look_at(status, keep_for, agenda).await? {
                Looked::Gone(more) => gone += more,
                other => return Ok(other),
            }
        }
        Ok(Looked::Gone(gone))
    }

    async fn look_at(&self, status: PlanStatus, keep_for: Duration, agenda: &mut Agenda) -> Result<Looked, Error> {
        let filter = PlanFilter { shard: Some(self.shard), status: Some(status), definition: None };
        let (mut gone, mut place) = (0, None);
        loop {
            let page = self.store.plans(&filter, place.as_ref(), PAGE).await?;
            for row in &page {
                let now = self.clock.now();
                let Some(sweep) = plan_over(row, keep_for, now) else {
                    row.ended_at.iter().for_each(|ended_at| agenda.note(ended_at.saturating_add(keep_for)));
                    continue;
                };
                let looked = self.remove(row, sweep, keep_for).await?;
                match looked {
                    Looked::Gone(1..) => gone += 1,
                    // It stays for now, and nothing tells when it can go.
                    Looked::Gone(0) => agenda.note(now),
                    Looked::NotNow => {
                        agenda.note(now);
                        return Ok(looked);
                    }
                    Looked::Over => return Ok(looked),
                }
            }
            match page.last() {
                Some(last) if page.len() == PAGE => place = Some(PlanCursor::from(last)),
                _ => return Ok(Looked::Gone(gone)),
            }
            self.clock.sleep(PAUSE).await;
        }
    }

    /// Removes a plan and its tasks, if nothing speaks against it.
    async fn remove(&self, row: &PlanRow, plan: Sweep, keep_for: Duration) -> Result<Looked, Error> {
        let counts = self.store.task_counts(std::slice::from_ref(&row.plan)).await?;
        if counts.iter().any(|count| !count.status.is_final()) {
            return Ok(Looked::Gone(0));
        }
        let Some(tasks) = self.tasks_over(row, keep_for).await? else { return Ok(Looked::Gone(0)) };
        for few in tasks.chunks(HANDED) {
            match self.hand_over(few.to_vec()).await {
                Some(Some(gone)) if gone == few.len() => self.clock.sleep(PAUSE).await,
                Some(Some(_)) => return Ok(Looked::Gone(0)), // somebody has to do with one of them; the next look finds the rest
                Some(None) => return Ok(Looked::NotNow),
                None => return Ok(Looked::Over),
            }
        }
        Ok(match self.hand_over(vec![plan]).await {
            Some(Some(gone)) => Looked::Gone(gone),
            Some(None) => Looked::NotNow,
            None => Looked::Over,
        })
    }

    /// All tasks of a plan; nothing if one of them has to stay.
    async fn tasks_over(&self, row: &PlanRow, keep_for: Duration) -> Result<Option<Vec<Sweep>>, Error> {
        let (mut all, mut place): (Vec<Sweep>, Option<RunId>) = (Vec::new(), None);
        loop {
            let page = self.store.tasks(&row.plan, place.as_ref(), PAGE).await?;
            let now = self.clock.now();
            let over: Option<Vec<_>> = page.iter().map(|row| task_over(row, keep_for, now)).collect();
            // Read after the rows: whoever takes a lock later than that has begun another life, and is kept for that.
            match over {
                Some(over) if !self.has_locks(&page).await? => all.extend(over),
                _ => return Ok(None),
            }
            match page.last() {
                Some(last) if page.len() == PAGE => place = Some(last.run.clone()),
                _ => return Ok(Some(all)),
            }
        }
    }

    /// Those of these runs that are tasks of plans that are not here, because they were begun by another instance: nothing but their own time keeps them.
    pub(super) async fn adopted_over(&self, rows: &[RunRow], now: Timestamp) -> Result<Vec<Sweep>, Error> {
        let (mut over, mut plans) = (Vec::new(), BTreeMap::<PlanId, bool>::new());
        for row in rows {
            let Some((task, keep_for)) = row.task.as_ref().zip(self.retention.keep_for(row.status)) else { continue };
            let Some(sweep) = task_over(row, keep_for, now) else { continue };
            let is_here = match plans.get(&task.plan) {
                Some(is_here) => *is_here,
                None => self.store.plan(&task.plan).await?.is_some(),
            };
            plans.insert(task.plan.clone(), is_here);
            if !is_here && !self.has_locks(std::slice::from_ref(row)).await? {
                over.push(sweep);
            }
        }
        Ok(over)
    }

    /// True if one of these tasks has its tenant's lock.
    async fn has_locks(&self, tasks: &[RunRow]) -> Result<bool, Error> {
        let tenants: Vec<_> = tasks.iter().filter_map(|row| TenantId::new(row.tenant.as_ref()?).ok()).collect();
        let locks = self.store.locks_of(&tenants).await?;
        Ok(locks.iter().any(|lock| tasks.iter().any(|row| row.run == lock.lease.task)))
    }
}

/// The plan of that row, if its time is over.
fn plan_over(row: &PlanRow, keep_for: Duration, now: Timestamp) -> Option<Sweep> {
    let ended_at = row.ended_at.filter(|_| row.status.is_final())?;
    (ended_at.saturating_add(keep_for) <= now).then(|| Sweep { entity: EntityId::Plan(row.plan.clone()), ended_at })
}

/// The task of that row, if the time of its plan is over for it, too.
fn task_over(row: &RunRow, keep_for: Duration, now: Timestamp) -> Option<Sweep> {
    let ended_at = row.ended_at.filter(|_| row.status.is_final())?;
    (ended_at.saturating_add(keep_for) <= now).then(|| Sweep { entity: (&row.run).into(), ended_at })
}
