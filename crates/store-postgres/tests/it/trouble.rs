//! A server that goes and comes back, is full, may not be written, or has no room for us.

use crate::fixture::{Database, Holder, seqs, settings, until};
use futures_util::FutureExt;
use std::time::Duration;
use steadfast_store::{Error, Store};
use steadfast_store_postgres::{Postgres, Settings};
use steadfast_test_servers::{PostgresOptions, PostgresServer};

/// What was acknowledged is there after a crash of the server, and the store goes on by itself.
#[tokio::test]
async fn a_restart_of_the_server_loses_nothing() {
    let mut server = PostgresServer::start();
    let store = Postgres::open(settings(server.url("postgres"))).await.unwrap();
    let mut holder = Holder::claim(&store, 0).await;
    for seq in 1..=3 {
        holder.send("a").await.unwrap();
        assert_eq!(seqs(&store, "a").await, seq);
        server.kill();
        let error = store.head(0).await.unwrap_err();
        assert!(error.is_retryable(), "{error:?}");
        assert!(store.last().await.is_err());
        server.restart();
        until("the store writes again", async || store.head(0).await.is_ok()).await;
        assert_eq!(store.head(0).await.unwrap(), holder.head);
        assert_eq!(seqs(&store, "a").await, seq);
    }
}

/// Nobody waits for ever for a server that does not answer.
#[tokio::test]
async fn a_server_that_stands_still_is_given_up_after_a_while() {
    let server = PostgresServer::start_with(PostgresOptions { fsync: false, ..PostgresOptions::default() });
    let (statement_timeout, connect_timeout) = (Duration::from_secs(2), Duration::from_secs(5));
    let impatient = Settings { statement_timeout, connect_timeout, ..settings(server.url("postgres")) };
    let store = Postgres::open(impatient).await.unwrap();
    let mut holder = Holder::claim(&store, 0).await;
    server.pause();
    let error = holder.send("a").await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("no answer came in time"), "{error}");
    assert!(store.run(&crate::fixture::run("a")).await.is_err());
    server.go_on();
    until("the store knows what became of it", async || store.head(0).await.is_ok()).await;
    let head = store.head(0).await.unwrap();
    assert_eq!(seqs(&store, "a").await, head.seq);
}

#[tokio::test]
async fn a_full_disk_and_a_database_that_may_not_be_written_are_told_apart() {
    let database = Database::new();
    let store = database.open().await;
    let mut holder = Holder::claim(&store, 0).await;
    database.psql(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER full_disk BEFORE INSERT ON steadfast.workflow_events EXECUTE FUNCTION full_disk()",
    );
    let error = holder.fail("a").await;
    assert!(matches!(error, Error::Full { .. }), "{error:?}");
    database.psql("DROP TRIGGER full_disk ON steadfast.workflow_events");
    holder.send("a").await.unwrap();
    database.psql(&format!("ALTER DATABASE {} SET default_transaction_read_only = on", database.name));
    let reader = database.open().await;
    assert_eq!(seqs(&reader, "a").await, 1);
    let error = reader.claim(0).await.unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_without_a_free_connection_says_what_to_do() {
    let more = [("max_connections", "4"), ("superuser_reserved_connections", "0"), ("max_wal_senders", "0"), ("autovacuum", "off")];
    let more = more.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let server = PostgresServer::start_with(PostgresOptions { fsync: false, more, ..PostgresOptions::default() });
    let open = || Postgres::open(settings(server.url("postgres")));
    let mut stores = vec![];
    let error = loop {
        match open().await {
            Ok(store) => stores.push(store),
            Err(error) => break error,
        }
        assert!(stores.len() <= 4);
    };
    assert!(error.is_retryable() && error.to_string().contains("raise its max_connections"), "{error}");
    assert!(stores[0].claim(0).await.is_ok(), "those that are connected go on");
    stores.truncate(1);
    until("there is a free connection", async || open().await.is_ok()).await;
}

/// However many read, there are as many connections as were allowed.
#[tokio::test]
async fn readers_share_a_few_connections() {
    let database = Database::new();
    let store = database.open().await;
    let reads = (0..50).map(|_| store.last());
    for outcome in futures_util::future::join_all(reads).await {
        outcome.unwrap();
    }
    let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'steadfast%'";
    assert!(database.psql(open).parse::<u32>().unwrap() <= 3);
}

/// A call that nobody waits for any more leaves no transaction open.
#[tokio::test]
async fn a_call_that_is_dropped_leaves_nothing_open() {
    let database = Database::new();
    let store = database.open().await;
    let mut holder = Holder::claim(&store, 0).await;
    for _ in 0..20 {
        drop(holder.send("a"));
        let _unheard = store.runs(&Default::default(), None, 9).now_or_never();
    }
    store.head(0).await.unwrap();
    assert_eq!(seqs(&store, "a").await, 20);
    let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    assert_eq!(database.psql(open), "0");
}
