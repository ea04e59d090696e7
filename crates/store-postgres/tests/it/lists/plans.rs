//! Plans of 10,000 tasks each, which are among the runs.

use super::quickly;
use steadfast_kernel::{PlanId, TenantId};
use steadfast_store::Store;
use steadfast_store_postgres::Postgres;

pub(super) async fn are_quick(store: &Postgres) {
    quickly("the tasks of a plan", 100, async || store.tasks(&PlanId::new("plan-10").unwrap(), None, 100).await).await;
    let plans: Vec<_> = (0..50).map(|number| PlanId::new(format!("plan-{number}")).unwrap()).collect();
    quickly("how the tasks of fifty plans stand", 100, async || store.task_counts(&plans).await).await;
    let tenant = TenantId::new("tenant-10").unwrap();
    quickly("the last task of a tenant", 1, async || Ok(store.latest_task(&tenant).await?.into_iter().collect())).await;
}
