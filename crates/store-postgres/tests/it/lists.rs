//! A million runs, and the lists that people look at.

use crate::fixture::Database;
use std::time::Duration;
use steadfast_kernel::{PlanId, RunId, Status, TenantId, Timestamp, WorkflowName};
use steadfast_store::{Error, RunCursor, RunFilter, Store};
use tokio::time::Instant;

/// Some filters let nothing through that each of them alone lets much through.
const RUNS: &str = "INSERT INTO steadfast.workflow_state (workflow_id, status, workflow, tenant, wait_reason, started_at, ended_at, shard, recover, plan_id, task_status,
  completed_stages, pause_requested)
SELECT 'run-' || n, (ARRAY['COMPLETED', 'FAILED', 'RUNNING', 'WAITING'])[1 + n % 4], 'w' || n % 40, 'tenant-' || n % 1000,
  CASE WHEN n % 4 = 3 THEN 'TIMER' END, timestamptz '2026-01-01 UTC' + n * interval '1 s', CASE WHEN n % 4 < 2 THEN now() END, n % 64,
  CASE WHEN n % 4000 = 2 THEN 'host' END, CASE WHEN n % 10 = 0 THEN 'plan-' || n % 1000 END, CASE WHEN n % 10 = 0 THEN 'COMPLETED' END,
  CASE WHEN n % 10 = 0 THEN 3 END, CASE WHEN n % 10 = 0 THEN false END
FROM generate_series(1, 1000000) AS n";

const ALLOWED: Duration = Duration::from_millis(50);

/// A list is asked for several times, and the quickest counts: what else the machine does is none of the database's doing.
async fn quickly<T>(what: &str, rows: usize, list: impl AsyncFn() -> Result<Vec<T>, Error>) {
    let mut took = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        assert_eq!(list().await.unwrap().len(), rows, "{what}");
        took = took.min(began.elapsed());
    }
    assert!(took < ALLOWED, "{what} takes {took:?}");
}

#[tokio::test]
async fn with_a_million_runs_every_list_answers_within_50_ms() {
    let database = Database::new();
    let store = database.open().await;
    database.psql(RUNS);
    database.psql("ANALYZE steadfast.workflow_state");
    let name = |name: &str| Some(WorkflowName::new(name).unwrap());
    let (all, tenant) = (RunFilter::default(), |tenant: &str| Some(tenant.to_owned()));
    let far = RunCursor { started_at: Timestamp::from_micros(1_767_325_600_000_000), run: RunId::new("run-1").unwrap() };
    for (what, filter, rows) in [
        ("all", all.clone(), 100),
        ("a status", RunFilter { status: Some(Status::Failed), ..all.clone() }, 100),
        ("a status that none has", RunFilter { status: Some(Status::Cancelled), ..all.clone() }, 0),
        ("a workflow", RunFilter { workflow: name("w7"), ..all.clone() }, 100),
        ("a workflow that none has", RunFilter { workflow: name("none"), ..all.clone() }, 0),
        ("a tenant", RunFilter { tenant: tenant("tenant-9"), ..all.clone() }, 100),
        ("what waits", RunFilter { wait: Some("TIMER".into()), ..all.clone() }, 100),
        ("what waits for nothing that there is", RunFilter { wait: Some("SIGNAL".into()), ..all.clone() }, 0),
        ("two that exclude each other", RunFilter { status: Some(Status::Failed), workflow: name("w8"), ..all.clone() }, 0),
        ("a tenant's failed ones", RunFilter { status: Some(Status::Failed), tenant: tenant("tenant-8"), ..all.clone() }, 0),
        ("a tenant's of a workflow", RunFilter { workflow: name("w9"), tenant: tenant("tenant-8"), ..all.clone() }, 0),
        ("a day long ago", RunFilter { until: Some(Timestamp::from_micros(1_767_312_000_000_000)), ..all.clone() }, 100),
    ] {
        quickly(what, rows, async || store.runs(&filter, None, 100).await).await;
        if rows > 0 && filter.until.is_none() {
            quickly(&format!("{what}, far from its beginning"), rows, async || store.runs(&filter, Some(&far), 100).await).await;
        }
    }
    quickly("one", 1, async || Ok(store.run(&RunId::new("run-500000").unwrap()).await?.into_iter().collect())).await;
    quickly("what a shard goes on with", 100, async || store.to_recover(2, None, 100).await).await;
    quickly("the oldest of a shard", 100, async || store.oldest(3, None, 100).await).await;
    quickly("the tasks of a plan", 100, async || store.tasks(&PlanId::new("plan-10").unwrap(), None, 100).await).await;
    let plans: Vec<_> = (0..20).map(|number| PlanId::new(format!("plan-{}", number * 10)).unwrap()).collect();
    quickly("how the tasks of twenty plans stand", 20, async || store.task_counts(&plans).await).await;
    let tenant = TenantId::new("tenant-10").unwrap();
    quickly("the last task of a tenant", 1, async || Ok(store.latest_task(&tenant).await?.into_iter().collect())).await;
}
