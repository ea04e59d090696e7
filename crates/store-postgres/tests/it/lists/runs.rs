//! Lists of runs, and searches in them.

use super::quickly;
use crate::fixture::Database;
use steadfast_kernel::{RunId, Status, Timestamp, WorkflowName};
use steadfast_store::{EXAMINED_STEP, EndedFilter, RunCursor, RunFilter, Store};
use steadfast_store_postgres::Postgres;

/// Some filters let nothing through that each of them alone lets much through. Half of them are tasks, of plans as large as plans may be. All of them say something:
/// a line, or a few, and in one workflow as much as a run may say.
const RUNS: &str = "INSERT INTO steadfast.workflow_state (workflow_id, status, workflow, tenant, wait_reason, note, started_at, ended_at, shard, recover, plan_id, task_status,
  completed_stages, pause_requested)
SELECT 'run-' || n, (ARRAY['COMPLETED', 'FAILED', 'RUNNING', 'WAITING'])[1 + n % 4], 'w' || n % 40, 'tenant-' || n % 1000,
  CASE WHEN n % 4 = 3 THEN 'TIMER' END, said.note, timestamptz '2026-01-01 UTC' + n * interval '1 s', CASE WHEN n % 4 < 2 THEN now() END, n % 64,
  CASE WHEN n % 4000 = 2 THEN 'host' END, CASE WHEN n % 2 = 0 THEN 'plan-' || n / 4 % 50 END,
  CASE n % 4 WHEN 0 THEN 'COMPLETED' WHEN 2 THEN 'RUNNING' END, CASE WHEN n % 2 = 0 THEN 3 END, CASE WHEN n % 2 = 0 THEN false END
FROM generate_series(1, 1000000) AS n CROSS JOIN LATERAL (
  SELECT string_agg('cannot charge ' || md5(n || ' ' || line) || ': connection refused by 10.0.' || line || '.7 (os error 111)', E'\\n') AS note
  FROM generate_series(1, CASE WHEN n % 40 = 7 OR n % 1000 = 1 THEN 48 WHEN n % 4 % 2 = 1 THEN 4 ELSE 1 END) AS line
) AS said";

/// Any two of a status, a workflow and a tenant have 100,000 runs together, and all three have none.
const TWO_OF_THREE: &str = "INSERT INTO steadfast.workflow_state (workflow_id, status, workflow, tenant, started_at, shard)
SELECT 'two-' || n, CASE WHEN n % 3 = 0 THEN 'WAITING' ELSE 'FAILED' END, CASE WHEN n % 3 = 1 THEN 'other' ELSE 'big' END,
  CASE WHEN n % 3 = 2 THEN 'other' ELSE 'big' END, timestamptz '2026-01-01 UTC' + n * interval '1 s', n % 64
FROM generate_series(1, 300000) AS n";

/// Any two of a wait, a workflow and a tenant have 100,000 runs together, and all three have none.
const TWO_OF_THREE_THAT_WAIT: &str =
    "INSERT INTO steadfast.workflow_state (workflow_id, status, wait_reason, workflow, tenant, started_at, shard)
SELECT 'held-' || n, 'WAITING', CASE WHEN n % 3 = 0 THEN 'LOCK' ELSE 'SLOT' END, CASE WHEN n % 3 = 1 THEN 'other' ELSE 'held' END,
  CASE WHEN n % 3 = 2 THEN 'other' ELSE 'held' END, timestamptz '2026-01-01 UTC' + n * interval '1 s', n % 64
FROM generate_series(1, 300000) AS n";

const COUNTS: &str = "INSERT INTO steadfast.task_counts
SELECT plan_id, task_status, shard, count(*) FROM steadfast.workflow_state WHERE plan_id IS NOT NULL GROUP BY plan_id, task_status, shard";

pub(super) fn make(database: &Database) {
    // So many in one transaction are counted quicker in the end than one by one.
    for rows in [RUNS, TWO_OF_THREE, TWO_OF_THREE_THAT_WAIT] {
        database.psql(&format!("SET session_replication_role = replica; {rows}"));
    }
    database.psql(COUNTS);
}

pub(super) async fn are_quick(store: &Postgres) {
    let name = |name: &str| Some(WorkflowName::new(name).unwrap());
    let (all, tenant) = (RunFilter::default(), |tenant: &str| Some(tenant.to_owned()));
    let (waits, of_three) = (
        || Some("TIMER".to_owned()),
        || RunFilter {
            status: Some(Status::Failed),
            workflow: Some(WorkflowName::new("big").unwrap()),
            tenant: Some("big".into()),
            ..RunFilter::default()
        },
    );
    let of_three_that_wait =
        RunFilter { wait: Some("SLOT".into()), workflow: name("held"), tenant: tenant("held"), ..RunFilter::default() };
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
        ("three of which any two go together", of_three(), 0),
        ("a workflow that had its runs long ago", RunFilter { workflow: name("big"), ..all.clone() }, 100),
        ("a tenant that had its runs long ago", RunFilter { tenant: tenant("big"), ..all.clone() }, 100),
        ("two of them", RunFilter { status: None, ..of_three() }, 100),
        ("what waits in a workflow where nothing does", RunFilter { wait: waits(), workflow: name("w8"), ..all.clone() }, 0),
        ("what waits and has failed", RunFilter { wait: waits(), status: Some(Status::Failed), ..all.clone() }, 0),
        ("what of a tenant waits", RunFilter { wait: waits(), tenant: tenant("tenant-8"), ..all.clone() }, 0),
        ("what of a tenant's of a workflow waits", of_three_that_wait, 0),
        ("a day long ago", RunFilter { until: Some(Timestamp::from_micros(1_767_312_000_000_000)), ..all.clone() }, 100),
    ] {
        quickly(what, rows, async || store.runs(&filter, None, 100).await).await;
        if rows > 0 && filter.until.is_none() {
            quickly(&format!("{what}, far from its beginning"), rows, async || store.runs(&filter, Some(&far), 100).await).await;
        }
    }
    for (what, filter, text, rows) in [
        ("a text that all have", all.clone(), "run-", 100),
        ("a text that none has", all.clone(), "nowhere", 0),
        ("a text in a status", RunFilter { status: Some(Status::Failed), ..all.clone() }, "nowhere", 0),
        ("a text in a workflow", RunFilter { workflow: name("w7"), ..all.clone() }, "nowhere", 0),
        ("a text in a tenant", RunFilter { tenant: tenant("big"), ..all.clone() }, "nowhere", 0),
        ("a text in what waits", RunFilter { wait: waits(), ..all.clone() }, "nowhere", 0),
        ("a text in a tenant's of a workflow", RunFilter { status: None, ..of_three() }, "nowhere", 0),
        ("a text in nothing", of_three(), "nowhere", 0),
    ] {
        // One step may begin just before the time of an answer is over, so two of them count.
        let step = async |after: Option<&RunCursor>| store.search(&filter, text, after, 100, EXAMINED_STEP).await;
        let search = async |after: Option<&RunCursor>| {
            let mut page = step(after).await?;
            if let Some(next) = page.next.take().filter(|_| page.rows.is_empty()) {
                page = step(Some(&next)).await?;
            }
            Ok(page.rows)
        };
        quickly(what, rows, async || search(None).await).await;
        if let Some(next) = step(None).await.unwrap().next {
            quickly(&format!("{what}, further on"), rows, async || search(Some(&next)).await).await;
        }
    }
    quickly("one", 1, async || Ok(store.run(&RunId::new("run-500000").unwrap()).await?.into_iter().collect())).await;
    quickly("what a shard goes on with", 100, async || store.to_recover(2, None, 100).await).await;
    quickly("the oldest of a shard", 100, async || store.oldest(3, None, 100).await).await;
    let ended = |until| EndedFilter { shard: 1, status: Status::Failed, tasks: false, until };
    quickly("what ended first in a shard", 100, async || store.ended(&ended(Timestamp::MAX), None, 100).await).await;
    quickly("what ended long ago in a shard", 0, async || store.ended(&ended(Timestamp::EPOCH), None, 100).await).await;
}
