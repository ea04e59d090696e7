//! How PostgreSQL carries out what is read: by indexes, and without sorting what is long.

use super::{Query, callbacks, feed, letters, plans, runs, tasks, timers};
use crate::connect::{Connection, Connector};
use crate::settings::Settings;
use crate::types::At;
use steadfast_kernel::{Class, Code, EntityId, LetterHome, PlanStatus, RunId, Status, Timestamp, WorkflowName};
use steadfast_store::{CallbackFilter, EndedFilter, LetterFilter, LetterKind, Place, PlanFilter, Position, RunCursor, RunFilter};
use steadfast_test_servers::PostgresServer;
use tokio_postgres::types::ToSql;

/// Enough for a plan to matter. Some filters let nothing through that each of them alone lets much through.
const ROWS: &str = "INSERT INTO steadfast.workflow_state (workflow_id, status, workflow, tenant, wait_reason, started_at, ended_at, shard, recover, plan_id, task_status)
SELECT 'run-' || n, CASE WHEN n % 100 = 50 THEN 'INTERRUPTED' ELSE (ARRAY['COMPLETED', 'FAILED', 'RUNNING', 'WAITING'])[1 + n % 4] END, 'w' || n % 40, 'tenant-' || n % 100,
  CASE WHEN n % 4 = 3 THEN 'TIMER' END, timestamptz '2026-01-01 UTC' + n * interval '1 s', NULL, n % 64, CASE WHEN n % 400 = 2 THEN 'host' END,
  CASE WHEN n % 10 = 0 THEN 'plan-' || n % 70 END, CASE WHEN n % 10 = 0 THEN 'RUNNING' END
FROM generate_series(1, 100000) AS n;
INSERT INTO steadfast.workflow_events (workflow_id, sequence, event_type, occurred_at, epoch, shard, place, body)
SELECT 'run-' || n, s, 'X', now(), 1, n % 64, (n / 64) * 5 + s, '' FROM generate_series(64, 20000) AS n, generate_series(1, 5) AS s;
INSERT INTO steadfast.workflow_events (workflow_id, sequence, event_type, occurred_at, epoch, shard, place, body)
SELECT 'long', s, 'X', now(), 1, 100, 2 * s, '' FROM generate_series(1, 50000) AS s;
UPDATE steadfast.shards SET place = 2000;
INSERT INTO steadfast.timers SELECT 'run-' || n, 'deadline', 'deadline', n % 64, now() + n * interval '1 s', 3, 1 FROM generate_series(1, 20000) AS n;
INSERT INTO steadfast.outbox SELECT 'run-' || n, 1, n % 64, 'run-1', 'k', '' FROM generate_series(1, 20000) AS n;
INSERT INTO steadfast.letters SELECT (ARRAY['w' || n % 50, 'w' || n % 50, 'key:/a/' || n % 1000, 'route:r' || n % 9])[1 + n % 4], n, n % 64, 'a', 'b',
  'tenant-' || n % 100, (ARRAY['TRANSIENT', 'PERMANENT'])[1 + n % 2], 'C' || n % 20, '', '', now() + n * interval '1 s' FROM generate_series(1, 50000) AS n;
INSERT INTO steadfast.callbacks SELECT '/k/' || n % 1000 || '/' || n, 1, n % 64, now() + n * interval '1 s', 't', 1, CASE WHEN n % 100 > 0 THEN now() END
FROM generate_series(1, 50000) AS n;
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
    assert!(!plan.contains("Sort"), "{plan}");
    for table in ["workflow_state", "workflow_events", "timers", "letters", "callbacks", "plans"] {
        assert!(!plan.contains(&format!("Seq Scan on {table}")), "{plan}");
    }
}

fn cursor() -> RunCursor {
    RunCursor { started_at: Timestamp::from_micros(1_767_235_600_000_000), run: RunId::new("run-1").unwrap() }
}

#[tokio::test]
async fn lists_of_runs_walk_an_index() {
    let connection = database().await;
    let cursor = cursor();
    let all = RunFilter::default();
    let (name, tenant) = (|name: &str| WorkflowName::new(name).unwrap(), || Some("tenant-9".to_owned()));
    for (filter, index) in [
        (all.clone(), "workflow_state_time"),
        (RunFilter { status: Some(Status::Interrupted), ..all.clone() }, "workflow_state_status "),
        (RunFilter { status: Some(Status::Cancelled), ..all.clone() }, "workflow_state_status"),
        (RunFilter { workflow: Some(name("w7")), ..all.clone() }, "workflow_state_workflow"),
        (RunFilter { tenant: Some("tenant-9".into()), ..all.clone() }, "workflow_state_tenant"),
        (RunFilter { tenant: Some("t".repeat(300)), ..all.clone() }, "workflow_state_tenant"),
        (RunFilter { wait: Some("SIGNAL".into()), ..all.clone() }, "workflow_state_wait"),
        (RunFilter { status: Some(Status::Failed), workflow: Some(name("w8")), ..all.clone() }, "workflow_state_status_workflow"),
        (RunFilter { status: Some(Status::Failed), tenant: tenant(), ..all.clone() }, "_tenant"),
        (RunFilter { workflow: Some(name("w8")), tenant: tenant(), ..all.clone() }, "_tenant"),
        (RunFilter { workflow: Some(name("w8")), wait: Some("TIMER".into()), ..all.clone() }, "workflow_state_wait_workflow"),
        (RunFilter { status: Some(Status::Failed), wait: Some("TIMER".into()), ..all.clone() }, "workflow_state_wait"),
        (RunFilter { tenant: tenant(), wait: Some("TIMER".into()), ..all.clone() }, "_tenant"),
        (
            RunFilter { status: Some(Status::Failed), workflow: Some(name("w8")), tenant: tenant(), ..all.clone() },
            "workflow_state_status_workflow_tenant",
        ),
    ] {
        for after in [None, Some(&cursor)] {
            walks(&plan_of(&connection, runs::list(&filter, after, 50)).await, index);
        }
    }
    let (at, run) = (At(cursor.started_at), cursor.run.as_str());
    walks(&plan(&connection, runs::RECOVER, &[&3, &at, &run, &50_i64]).await, "workflow_state_recover");
    walks(&plan(&connection, runs::OLDEST, &[&3, &at, &run, &50_i64]).await, "workflow_state_shard");
    for (tasks, index) in [(false, "workflow_state_ended "), (true, "workflow_state_ended_tasks")] {
        let filter = EndedFilter { shard: 3, status: Status::Failed, tasks, until: Timestamp::MAX };
        walks(&plan_of(&connection, runs::ended(&filter, None, 500)).await, index);
    }
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
    walks(&one, "workflow_events_pkey");
    let far = [Place { shard: 100, number: 99_000 }].into_iter().collect();
    let one = plan_of(&connection, feed::after(&far, Some(&EntityId::from_stored("long").unwrap()), 500, 500)).await;
    assert!(one.contains("sequence > "), "it begins where it goes on, and not with the first entry:\n{one}");
    let journal = plan(&connection, super::events::JOURNAL, &[&"run-7", &0_i64, &500_i64]).await;
    walks(&journal, "workflow_events_pkey");
}

#[tokio::test]
async fn timers_letters_callbacks_and_plans_walk_an_index() {
    let connection = database().await;
    let waits = plan(&connection, super::shards::BACKLOGS, &[&(0..64).collect::<Vec<i32>>(), &1_000_i64]).await;
    assert!(waits.contains("timers_due") && waits.contains("outbox_shard"), "{waits}");
    // Those that are due at the same time are sorted by name, which may be too long for an index.
    let timers = plan_of(&connection, timers::list(3, None, 50)).await;
    assert!(timers.contains("timers_due") && timers.contains("Incremental Sort"), "{timers}");
    let filter = LetterFilter::default();
    let home = LetterHome::parse("w7");
    for (filter, index) in [
        (filter.clone(), "letters_time"),
        (LetterFilter { home: home.clone(), ..filter.clone() }, "letters_home"),
        (LetterFilter { kind: Some(LetterKind::Expiry), ..filter.clone() }, "letters_kind"),
        (LetterFilter { tenant: Some("tenant-9".into()), ..filter.clone() }, "letters_tenant"),
        (LetterFilter { class: Some(Class::Poison), ..filter.clone() }, "letters_class"),
        (LetterFilter { code: Some(Code::ALL[0]), ..filter.clone() }, "letters_code"),
        (LetterFilter { class: Some(Class::Transient), code: Some(Code::ALL[0]), ..filter.clone() }, "_code"),
        (LetterFilter { home, class: Some(Class::Poison), ..filter.clone() }, "letters_"),
    ] {
        for order in [letters::Order::NewestFirst, letters::Order::OldestFirst] {
            walks(&plan_of(&connection, letters::list(&filter, order, None, 50)).await, index);
        }
    }
    let first = CallbackFilter { shard: Some(3), first: true, ..CallbackFilter::default() };
    for (filter, index) in [
        (CallbackFilter::default(), "callbacks_time"),
        (CallbackFilter { shard: Some(3), ..CallbackFilter::default() }, "callbacks_shard"),
        (first, "callbacks_first"),
    ] {
        walks(&plan_of(&connection, callbacks::list(&filter, None, 50)).await, index);
    }
    let (all, running) = (PlanFilter::default(), PlanFilter { status: Some(PlanStatus::Paused), ..PlanFilter::default() });
    walks(&plan_of(&connection, plans::list(&all, None, 50)).await, "plans_time");
    walks(&plan_of(&connection, plans::list(&running, None, 50)).await, "plans_status");
}
