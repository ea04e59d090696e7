//! The schema is made once, and what it must not be is refused.

use crate::fixture::{Database, Holder, seqs};
use futures_util::future::join_all;
use steadfast_store::{Error, Store};
use steadfast_store_postgres::{Postgres, Settings};

#[tokio::test]
async fn instances_that_start_at_once_make_one_schema() {
    let database = Database::new();
    let stores = join_all((0..4).map(|_| database.open())).await;
    assert_eq!(database.psql("SELECT version, name FROM steadfast.migrations"), "1|tables");
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

#[tokio::test]
async fn a_newer_schema_is_used_if_it_says_so_and_refused_if_not() {
    let database = Database::new();
    Holder::claim(&database.open().await, 0).await.send("a").await.unwrap();
    database.psql("INSERT INTO steadfast.migrations VALUES (2, 'later', 'x', 1)");
    let store = database.open().await;
    assert_eq!(seqs(&store, "a").await, 1);
    database.psql("INSERT INTO steadfast.migrations VALUES (3, 'much later', 'x', 2)");
    let error = Postgres::open(database.settings()).await.unwrap_err();
    assert!(matches!(error, Error::Newer { found: 3, known: 1, .. }), "{error:?}");
    assert!(!error.is_retryable());
    assert_eq!(database.psql("SELECT count(*) FROM steadfast.workflow_events"), "1", "it was left as it is");
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

#[tokio::test]
async fn a_schema_that_was_changed_is_refused() {
    let database = Database::new();
    drop(database.open().await);
    for change in ["UPDATE steadfast.migrations SET checksum = 'x'", "UPDATE steadfast.migrations SET version = 2"] {
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
