//! A server that goes and comes back, is full, may not be written, or has no room for us.

use crate::fixture::{Database, Holder, behind, seqs, settings, until};
use futures_util::FutureExt;
use std::time::Duration;
use steadfast_store::{Error, Heard, Leases, Store};
use steadfast_store_postgres::{Postgres, Settings};
use steadfast_test_servers::{PostgresOptions, PostgresServer, Proxy};

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
    assert_eq!(database.connections("state LIKE 'idle in transaction%'"), 0);
}

/// Patient enough for nothing to end by itself.
async fn open_patiently(database: &Database) -> Postgres {
    let statement_timeout = Duration::from_secs(600);
    Postgres::open(Settings { statement_timeout, ..database.settings() }).await.unwrap()
}

const READING: &str = "state = 'active' AND application_name = 'steadfast reader'";

/// Whoever leaves takes the query along; there are never more connections than were allowed, and others can use them at once.
#[tokio::test]
async fn a_read_that_is_dropped_is_ended_on_the_server() {
    let database = Database::new();
    let store = open_patiently(&database).await;
    database.close_table("workflow_state");
    for _ in 0..3 {
        let reads = [(); 4].map(|()| {
            let store = store.clone();
            tokio::spawn(async move { store.run(&crate::fixture::run("a")).await })
        });
        until("two read, and two wait for them", async || database.connections(READING) == 2).await;
        reads.iter().for_each(tokio::task::JoinHandle::abort);
        until("nobody reads", async || database.connections(READING) == 0).await;
        assert_eq!(seqs(&store, "a").await, 0);
    }
    until("no more are left than were allowed", async || database.connections("true") <= 3).await;
}

/// Those who look at lists do not stop the work.
#[tokio::test]
async fn lists_do_not_have_all_connections() {
    let database = Database::new();
    let store = open_patiently(&database).await;
    database.close_table("workflow_state");
    let lists = [(); 4].map(|()| {
        let store = store.clone();
        tokio::spawn(async move { store.runs(&Default::default(), None, 9).await })
    });
    until("one is read, and the others wait", async || database.connections(READING) == 1).await;
    assert_eq!(seqs(&store, "a").await, 0);
    assert_eq!(database.connections(READING), 1, "work went by it");
    database.open_tables();
    for list in lists {
        assert_eq!(list.await.unwrap().unwrap(), []);
    }
}

/// Whoever waits already is told by the first try that the server is away.
#[tokio::test]
async fn those_in_line_share_an_outage() {
    let database = Database::new();
    let proxy = Proxy::before(database.server.port());
    let store = Postgres::open(behind(&proxy, &database)).await.unwrap();
    proxy.refuse(true);
    until("the connection is gone", async || store.head(0).await.is_err()).await;
    let before = proxy.connections();
    let outcomes = futures_util::future::join_all((0..64).map(|shard| store.head(shard))).await;
    assert!(outcomes.iter().all(Result::is_err));
    assert_eq!(proxy.connections() - before, 1);
    proxy.refuse(false);
    until("the store is back", async || store.head(0).await.is_ok()).await;
}

/// A server that is a standby now has what was committed a while ago, and takes nothing.
#[tokio::test]
async fn a_standby_is_refused() {
    let mut server = PostgresServer::start_with(PostgresOptions { fsync: false, ..PostgresOptions::default() });
    let store = Postgres::open(settings(server.url("postgres"))).await.unwrap();
    Holder::claim(&store, 0).await.send("a").await.unwrap();
    server.demote();
    let error = Postgres::open(settings(server.url("postgres"))).await.unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
    until("it is known", async || matches!(store.head(0).await, Err(Error::ReadOnly { .. }))).await;
    assert!(matches!(store.last().await, Err(Error::ReadOnly { .. })));
    server.psql("postgres", "SELECT pg_promote()");
    until("the store is back", async || store.head(0).await.is_ok()).await;
    assert_eq!(seqs(&store, "a").await, 1);
}

/// A server of two that may not be written any more, and whose connections stay.
fn make_read_only(server: &PostgresServer) {
    server.psql("postgres", "ALTER SYSTEM SET default_transaction_read_only = on");
    server.psql("postgres", "SELECT pg_reload_conf()");
}

/// Two servers that know nothing of each other, and a store that has both. It is at the first one, where there is something.
async fn at_the_first_of_two() -> (PostgresServer, PostgresServer, Postgres) {
    let start = || PostgresServer::start_with(PostgresOptions { fsync: false, ..PostgresOptions::default() });
    let (first, second) = (start(), start());
    drop(Postgres::open(settings(second.url("postgres"))).await.unwrap());
    let both = format!("postgresql://postgres@127.0.0.1:{},127.0.0.1:{}/postgres", first.port(), second.port());
    let store = Postgres::open(settings(both)).await.unwrap();
    Holder::claim(&store, 0).await.send("a").await.unwrap();
    assert_eq!(seqs(&store, "a").await, 1);
    (first, second, store)
}

/// Leases are renewed by connections of their own, which find out by themselves; who only reads or listens hears it from them.
#[tokio::test]
async fn leases_leave_a_server_that_may_not_be_written_any_more() {
    let (first, second, store) = at_the_first_of_two().await;
    let leases = store.leases(Duration::from_secs(900));
    assert_eq!(leases.heard().await, Heard::Leases);
    leases.beat("me").await.unwrap();
    leases.instances().await.unwrap();
    make_read_only(&first);
    let at = |server: &PostgresServer, name: &str| {
        server.psql("postgres", &format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'steadfast {name}'"))
    };
    until("they are at the other one", async || {
        assert_eq!(leases.beat("me").await.unwrap(), None, "no error is seen");
        at(&second, "reader") != "0"
    })
    .await;
    assert!(leases.drain("me", true).await.is_ok_and(|found| !found));
    assert_eq!(seqs(&store, "a").await, 0, "nobody reads what is there no more");
    until("who listens has moved, too", async || at(&second, "listener") == "1" && at(&first, "listener") == "0").await;
}

/// What is read goes on where what is written does.
#[tokio::test]
async fn readers_follow_the_one_who_writes() {
    let (first, _second, store) = at_the_first_of_two().await;
    make_read_only(&first);
    until("it is written elsewhere", async || store.claim(1).await.is_ok() && seqs(&store, "a").await == 0).await;
}

/// What the server says of values stays there.
#[tokio::test]
async fn errors_show_no_values() {
    let database = Database::new();
    let store = database.open().await;
    let mut holder = Holder::claim(&store, 0).await;
    database.psql(
        "CREATE FUNCTION secret() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           RAISE EXCEPTION 'no' USING ERRCODE = '53200', DETAIL = 'hush', HINT = 'hush'; END $$;
         CREATE TRIGGER secret BEFORE INSERT ON steadfast.workflow_events EXECUTE FUNCTION secret()",
    );
    let error = holder.fail("a").await;
    assert!(format!("{error:?}").contains("53200") && !format!("{error:?}").contains("hush"), "{error:?}");
}
