//! The schema is made once, and what it must not be is refused.

use crate::fixture::{Database, Holder, batch, entity, new_year, row, seqs, until};
use futures_util::future::join_all;
use steadfast_kernel::{PlanId, Status};
use steadfast_store::{Batch, Error, RunRow, Store, Sweep, Swept};
use steadfast_store_postgres::{Postgres, Settings};

#[tokio::test]
async fn instances_that_start_at_once_make_one_schema() {
    let database = Database::new();
    let stores = join_all((0..4).map(|_| database.open())).await;
    assert_eq!(database.psql("SELECT version, name FROM steadfast.migrations WHERE version < 3 ORDER BY version"), "1|tables\n2|fence");
    assert_eq!(database.psql("SELECT count(*) = max(version) FROM steadfast.migrations"), "t");
    let claims = join_all(stores.iter().map(|store| store.claim(3))).await;
    let mut terms: Vec<_> = claims.into_iter().map(|head| head.unwrap().term).collect();
    terms.sort_unstable();
    assert_eq!(terms, [1, 2, 3, 4]);
}

#[tokio::test]
async fn the_number_of_shards_is_decided_once() {
    let database = Database::new();
    let with = |shards| Settings { shards, ..database.settings() };
    assert_eq!(Postgres::open(with(8)).await.unwrap().shards(), 8);
    assert_eq!(Postgres::open(with(64)).await.unwrap().shards(), 8);
    assert_eq!(database.psql("SELECT count(*) FROM steadfast.shards"), "8");
}

/// The version that this program knows.
fn known(database: &Database) -> u32 {
    database.psql("SELECT max(version) FROM steadfast.migrations").parse().unwrap()
}

/// A newer program applies another one.
fn apply(database: &Database, version: u32, compatible_from: u32) {
    database.psql(&format!("INSERT INTO steadfast.migrations VALUES ({version}, 'later', 'x', {compatible_from})"));
}

/// The schema is as it was before that version; what does nothing if it was done before is left.
fn go_back(database: &Database, version: u32) {
    database.psql("DROP TABLE steadfast.task_counts; DROP FUNCTION steadfast.count_task CASCADE");
    database.psql(&format!("DELETE FROM steadfast.migrations WHERE version >= {version}"));
}

#[tokio::test]
async fn a_newer_schema_is_used_if_it_says_so_and_refused_if_not() {
    let database = Database::new();
    Holder::claim(&database.open().await, 0).await.send("a").await.unwrap();
    let ours = known(&database);
    apply(&database, ours + 1, ours);
    let store = database.open().await;
    assert_eq!(seqs(&store, "a").await, 1);
    apply(&database, ours + 2, ours + 1);
    let error = Postgres::open(database.settings()).await.unwrap_err();
    assert!(matches!(error, Error::Newer { found, known, .. } if (found, known) == (ours + 2, ours)), "{error:?}");
    assert!(!error.is_retryable());
    assert_eq!(database.psql("SELECT count(*) FROM steadfast.workflow_events"), "1", "it was left as it is");
}

/// An instance that runs while a newer program makes the schema something that it does not know writes nothing more.
#[tokio::test]
async fn an_instance_that_has_become_too_old_is_stopped() {
    let database = Database::new();
    let store = database.open().await;
    let mut holder = Holder::claim(&store, 0).await;
    holder.send("a").await.unwrap();
    let ours = known(&database);
    apply(&database, ours + 1, ours);
    holder.send("a").await.unwrap();
    apply(&database, ours + 2, ours + 1);
    let error = holder.fail("a").await;
    assert!(matches!(error, Error::Newer { found, known, .. } if (found, known) == (ours + 2, ours)), "{error:?}");
    database.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'steadfast writer%' AND datname = current_database()");
    until("it finds out when it connects, too", async || matches!(store.claim(0).await, Err(Error::Newer { .. }))).await;
    assert_eq!(database.psql("SELECT count(*) FROM steadfast.workflow_events"), "2");
}

/// It may not know what else has to go with a run.
#[tokio::test]
async fn an_instance_that_has_become_too_old_removes_nothing() {
    let database = Database::new();
    let store = database.open().await;
    let ended = RunRow { status: Status::Completed, ended_at: Some(new_year()), recover: None, ..row("a") };
    let put = batch(&store, Batch { runs: vec![ended], ..Batch::default() }).await;
    let term = put.fences[0].term;
    store.commit(put).await.unwrap();
    let ours = known(&database);
    apply(&database, ours + 1, ours + 1);
    let over = [Sweep { entity: entity("a"), ended_at: new_year() }];
    let error = store.sweep(0, term, &over).await.unwrap_err();
    assert!(matches!(error, Error::Newer { found, known, .. } if (found, known) == (ours + 1, ours)), "{error:?}");
    assert_eq!(database.psql("SELECT count(*) FROM steadfast.workflow_state"), "1");
    database.psql(&format!("UPDATE steadfast.migrations SET compatible_from = {ours} WHERE version > {ours}"));
    assert_eq!(store.sweep(0, term, &over).await.unwrap(), [Swept::Gone]);
}

/// A newer program adds columns while this one goes on.
#[tokio::test]
async fn columns_may_be_added_while_a_store_is_open() {
    let database = Database::new();
    let store = database.open().await;
    let mut holder = Holder::claim(&store, 0).await;
    holder.send("a").await.unwrap();
    let state = crate::fixture::row("a");
    assert_eq!(store.run(&state.run).await.unwrap(), None);
    database
        .psql("ALTER TABLE steadfast.workflow_state ADD COLUMN later integer; ALTER TABLE steadfast.workflow_events ADD COLUMN later text");
    assert_eq!(store.run(&state.run).await.unwrap(), None);
    holder.send("a").await.unwrap();
    assert_eq!(seqs(&store, "a").await, 2);
}

/// What is left of one is of no use, and keeps its name from the next.
#[tokio::test]
async fn an_index_whose_building_was_cut_off_is_built_again() {
    let database = Database::new();
    drop(database.open().await);
    let index = "'steadfast.workflow_state_status_workflow_tenant'::regclass";
    go_back(&database, 6);
    database.psql(&format!("UPDATE pg_index SET indisvalid = false WHERE indexrelid = {index}"));
    drop(database.open().await);
    assert_eq!(database.psql(&format!("SELECT indisvalid FROM pg_index WHERE indexrelid = {index}")), "t");
}

/// Somebody who has written and does not commit holds up the index, and nobody else.
#[tokio::test]
async fn an_index_is_built_while_others_write() {
    let database = Database::new();
    let store = database.open().await;
    go_back(&database, 6);
    database.psql("DROP INDEX steadfast.workflow_state_status_workflow_tenant");
    let client = database.client().await;
    client
        .batch_execute("BEGIN; UPDATE steadfast.workflow_state SET note = note WHERE false")
        .await
        .unwrap();
    let settings = database.settings();
    let newer = tokio::spawn(async move { Postgres::open(settings).await.map(drop) });
    let building = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%CREATE INDEX%' AND wait_event_type = 'Lock' \
                    AND pid <> pg_backend_pid()";
    until("the index waits", async || database.psql(building) == "1").await;
    for _ in 0..3 {
        store.commit(batch(&store, Batch { runs: vec![row("a")], ..Batch::default() }).await).await.unwrap();
    }
    assert_eq!(database.psql(building), "1", "it still waits");
    client.batch_execute("COMMIT").await.unwrap();
    newer.await.unwrap().unwrap();
}

/// Whichever program writes them: an older one goes on beside a newer one, and people mend rows by hand.
#[tokio::test]
async fn tasks_are_counted_whoever_changes_them() {
    let database = Database::new();
    let store = database.open().await;
    let counts = async || {
        let counts = store.task_counts(&["p", "q"].map(|id| PlanId::new(id).unwrap())).await.unwrap();
        counts
            .iter()
            .map(|count| format!("{} {} {}", count.plan, count.status.as_str(), count.tasks))
            .collect::<Vec<_>>()
    };
    database.psql(
        "DROP TRIGGER task_added ON steadfast.workflow_state;
INSERT INTO steadfast.workflow_state (workflow_id, status, workflow, started_at, shard, plan_id, task_status, completed_stages, pause_requested)
SELECT 't' || n, 'RUNNING', 'w', now(), n % 3, CASE WHEN n < 10 THEN 'p' END, CASE WHEN n < 10 THEN 'RUNNING' END, 0, false FROM generate_series(1, 12) AS n",
    );
    go_back(&database, 10);
    drop(database.open().await);
    assert_eq!(counts().await, ["p RUNNING 9"], "those that were there before are counted");
    for (change, expected) in [
        (
            "UPDATE steadfast.workflow_state SET task_status = 'COMPLETED' WHERE workflow_id < 't4' AND plan_id IS NOT NULL",
            &["p COMPLETED 3", "p RUNNING 6"][..],
        ),
        ("UPDATE steadfast.workflow_state SET note = 'x', tenant = 'y'", &["p COMPLETED 3", "p RUNNING 6"]),
        ("UPDATE steadfast.workflow_state SET plan_id = 'q' WHERE workflow_id = 't1'", &["p COMPLETED 2", "p RUNNING 6", "q COMPLETED 1"]),
        ("UPDATE steadfast.workflow_state SET shard = 9", &["p COMPLETED 2", "p RUNNING 6", "q COMPLETED 1"]),
        ("UPDATE steadfast.workflow_state SET plan_id = NULL WHERE workflow_id = 't9'", &["p COMPLETED 2", "p RUNNING 5", "q COMPLETED 1"]),
        ("DELETE FROM steadfast.workflow_state WHERE task_status = 'COMPLETED'", &["p RUNNING 5"]),
        ("DELETE FROM steadfast.workflow_state", &[]),
    ] {
        database.psql(change);
        assert_eq!(counts().await, expected, "{change}");
    }
    assert_eq!(database.psql("SELECT count(*) FROM steadfast.task_counts"), "0", "nothing is left of what is gone");
}

/// Lists step over what was not vacuumed yet.
#[tokio::test]
async fn tables_that_change_all_the_time_are_vacuumed_early() {
    let database = Database::new();
    drop(database.open().await);
    let early =
        "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relnamespace = 'steadfast'::regnamespace AND relkind = 'r'
AND EXISTS (SELECT FROM unnest(reloptions) AS o WHERE o LIKE 'autovacuum_vacuum_scale_factor=0.0%')";
    assert_eq!(database.psql(early), "callbacks keys outbox task_counts timers workflow_state");
    let fill = "SELECT count(*) FROM pg_class WHERE oid = 'steadfast.workflow_state'::regclass AND 'fillfactor=80' = ANY (reloptions)";
    assert_eq!(database.psql(fill), "1", "what was set before stays");
}

#[tokio::test]
async fn a_schema_that_was_changed_is_refused() {
    let database = Database::new();
    drop(database.open().await);
    for change in ["UPDATE steadfast.migrations SET checksum = 'x'", "UPDATE steadfast.migrations SET version = version + 10"] {
        database.psql(change);
        let error = Postgres::open(database.settings()).await.unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
        assert!(error.to_string().contains("migration 1"), "{error}");
    }
}

#[tokio::test]
async fn a_user_without_rights_is_told_what_to_do() {
    let database = Database::new();
    let name = &database.name;
    database.psql(&format!("CREATE ROLE {name}_guest LOGIN; REVOKE CREATE ON DATABASE {name} FROM PUBLIC"));
    let url = database.server.url(name).replace("postgres@", &format!("{name}_guest@"));
    let error = Postgres::open(Settings::new(url)).await.unwrap_err();
    assert!(error.to_string().contains("right to create a schema"), "{error}");
}

/// Somebody may have made the schema for a user who may make none.
#[tokio::test]
async fn a_schema_that_is_there_needs_no_right_to_create_one() {
    let database = Database::new();
    let (name, user) = (&database.name, format!("{}_owner", database.name));
    database.psql(&format!(
        "CREATE ROLE {user} LOGIN; REVOKE CREATE ON DATABASE {name} FROM PUBLIC; CREATE SCHEMA steadfast AUTHORIZATION {user}"
    ));
    let url = database.server.url(name).replace("postgres@", &format!("{user}@"));
    let store = Postgres::open(crate::fixture::settings(url)).await.unwrap();
    Holder::claim(&store, 0).await.send("a").await.unwrap();
}

#[tokio::test]
async fn a_database_that_cannot_have_every_text_is_refused() {
    let database = Database::new();
    let name = format!("{}_latin", database.name);
    database.psql(&format!("CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"));
    let error = Postgres::open(crate::fixture::settings(database.server.url(&name))).await.unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }) && error.to_string().contains("LATIN1"), "{error}");
}
