//! How PostgreSQL carries out what is read: by indexes, and without sorting what is long.

use super::{Query, feed, letters, plans, runs, tasks, timers};
use crate::connect::{Connection, Connector};
use crate::settings::Settings;
use crate::types::At;
use steadfast_kernel::{EntityId, PlanStatus, RunId, Status, Timestamp, WorkflowName};
use steadfast_store::{LetterFilter, Place, PlanFilter, Position, RunCursor, RunFilter};
use steadfast_test_servers::PostgresServer;
use tokio_postgres::types::ToSql;

/// Enough for a plan to matter. With so few it would be as good to sort some of them, so that has to be ruled out.
const ROWS: &str = "SET enable_bitmapscan = off;
INSERT INTO steadfast.workflow_state (workflow_id, status, workflow, tenant, wait_reason, started_at, ended_at, shard, recover, plan_id, task_status)
SELECT 'run-' || n, (ARRAY['COMPLETED', 'FAILED', 'RUNNING', 'WAITING'])[1 + n % 4], 'w' || n % 50, 'tenant-' || n % 100,
  CASE WHEN n % 4 = 3 THEN 'TIMER' END, timestamptz '2026-01-01 UTC' + n * interval '1 s', NULL, n % 64, CASE WHEN n % 400 = 2 THEN 'host' END,
  CASE WHEN n % 10 = 0 THEN 'plan-' || n % 70 END, CASE WHEN n % 10 = 0 THEN 'RUNNING' END
FROM generate_series(1, 30000) AS n;
INSERT INTO steadfast.workflow_events (workflow_id, sequence, event_type, occurred_at, epoch, shard, place, body)
SELECT 'run-' || n, s, 'X', now(), 1, n % 64, (n / 64) * 5 + s, '' FROM generate_series(64, 20000) AS n, generate_series(1, 5) AS s;
UPDATE steadfast.shards SET place = 2000;
INSERT INTO steadfast.timers SELECT 'run-' || n, 'deadline', 'deadline', n % 64, now() + n * interval '1 s', 3, 1 FROM generate_series(1, 20000) AS n;
INSERT INTO steadfast.letters SELECT 'w' || n % 50, n, n % 64, 'a', 'b', NULL, 'poison', 'X', '', '', now() + n * interval '1 s'
FROM generate_series(1, 20000) AS n;
INSERT INTO steadfast.plans SELECT 'p' || n, n % 64, 'd' || n % 50, 'RUNNING', NULL, now() + n * interval '1 s', NULL, NULL
FROM generate_series(1, 20000) AS n;
ANALYZE";

async fn database() -> Connection {
    let server = PostgresServer::shared();
    let connector = Connector::new(Settings::new(server.url(&server.database()))).unwrap();
    crate::migrate::migrate(&connector).await.unwrap();
    let connection = connector.connect("test").await.unwrap();
    connection.client.batch_execute(ROWS).await.unwrap();
    connection
}

async fn plan(connection: &Connection, sql: &str, params: &[&(dyn ToSql + Sync)]) -> String {
    let rows = connection.client.query(&format!("EXPLAIN (COSTS OFF) {sql}"), params).await.unwrap();
    rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n")
}

async fn plan_of(connection: &Connection, query: Query<'_>) -> String {
    let params: Vec<&(dyn ToSql + Sync)> = query.params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect();
    plan(connection, &query.sql, &params).await
}

/// The index that is walked, with nothing sorted and no table read as a whole.
fn walks(plan: &str, index: &str) {
    assert!(plan.contains(index), "{index} is not used:\n{plan}");
    assert!(!plan.contains("Sort") && !plan.contains("Seq Scan on workflow"), "{plan}");
}

fn cursor() -> RunCursor {
    RunCursor { started_at: Timestamp::from_micros(1_767_235_600_000_000), run: RunId::new("run-1").unwrap() }
}

#[tokio::test]
async fn lists_of_runs_walk_an_index() {
    let connection = database().await;
    let cursor = cursor();
    let all = RunFilter::default();
    for (filter, index) in [
        (all.clone(), "workflow_state_time"),
        (RunFilter { status: Some(Status::Failed), ..all.clone() }, "workflow_state"),
        (RunFilter { status: Some(Status::Cancelled), ..all.clone() }, "workflow_state_status"),
        (RunFilter { workflow: Some(WorkflowName::new("w7").unwrap()), ..all.clone() }, "workflow_state_workflow"),
        (RunFilter { tenant: Some("tenant-9".into()), ..all.clone() }, "workflow_state_tenant"),
        (RunFilter { tenant: Some("t".repeat(300)), ..all.clone() }, "workflow_state_tenant"),
        (RunFilter { wait: Some("SIGNAL".into()), ..all.clone() }, "workflow_state_wait"),
    ] {
        for after in [None, Some(&cursor)] {
            walks(&plan_of(&connection, runs::list(&filter, after, 50)).await, index);
        }
    }
    let (at, run) = (At(cursor.started_at), cursor.run.as_str());
    walks(&plan(&connection, runs::RECOVER, &[&3, &at, &run, &50_i64]).await, "workflow_state_recover");
    walks(&plan(&connection, runs::OLDEST, &[&3, &at, &run, &50_i64]).await, "workflow_state_shard");
    walks(&plan(&connection, tasks::OF_PLAN, &[&"plan-10", &"", &50_i64]).await, "workflow_state_plan");
    walks(&plan(&connection, tasks::LATEST, &[&"tenant-10"]).await, "workflow_state_task");
}

#[tokio::test]
async fn the_feed_is_read_from_its_place_in_every_shard() {
    let connection = database().await;
    let after: Position = (0..64).map(|shard| Place { shard, number: 1_500 }).collect();
    let all = plan_of(&connection, feed::after(&after, None, 16, 500)).await;
    assert!(all.contains("workflow_events_place") && !all.contains("Seq Scan on workflow_events"), "{all}");
    let one = plan_of(&connection, feed::after(&after, Some(&EntityId::from_stored("run-7").unwrap()), 500, 500)).await;
    assert!(one.contains("workflow_id = 'run-7'") && !one.contains("Seq Scan on workflow_events"), "{one}");
    let journal = plan(&connection, super::events::JOURNAL, &[&"run-7", &0_i64, &500_i64]).await;
    walks(&journal, "workflow_events_pkey");
}

#[tokio::test]
async fn timers_letters_and_plans_walk_an_index() {
    let connection = database().await;
    // Those that are due at the same time are sorted by name, which may be too long for an index.
    let timers = plan_of(&connection, timers::list(3, None, 50)).await;
    assert!(timers.contains("timers_due") && timers.contains("Incremental Sort"), "{timers}");
    let filter = LetterFilter::default();
    walks(&plan_of(&connection, letters::list(&filter, letters::Order::NewestFirst, None, 50)).await, "letters_time");
    let (all, running) = (PlanFilter::default(), PlanFilter { status: Some(PlanStatus::Paused), ..PlanFilter::default() });
    walks(&plan_of(&connection, plans::list(&all, None, 50)).await, "plans_time");
    walks(&plan_of(&connection, plans::list(&running, None, 50)).await, "plans_status");
}
