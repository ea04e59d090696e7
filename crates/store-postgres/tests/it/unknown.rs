//! Commits whose outcome nobody heard: `head` tells what became of them, once and for all.

use crate::fixture::{Database, Holder, batch, behind, entity, new_year, row, run, seqs, until};
use std::time::Duration;
use steadfast_kernel::Status;
use steadfast_store::{Batch, Error, Head, RunRow, Store, Sweep};
use steadfast_store_postgres::{Postgres, Settings};
use steadfast_test_servers::{Losses, Proxy};

/// The server has committed, and its answer vanishes with the connection.
#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_found() {
    let database = Database::new();
    let proxy = Proxy::before(database.server.port());
    let store = Postgres::open(behind(&proxy, &database)).await.unwrap();
    let mut holder = Holder::claim(&store, 0).await;
    holder.send("a").await.unwrap();
    proxy.swallow_answers();
    let lost = tokio::spawn(holder.send("a"));
    until("the server has it", async || database.psql("SELECT seq FROM steadfast.shards WHERE id = 0") == "2").await;
    proxy.let_go();
    proxy.cut();
    let error = lost.await.unwrap().unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
    assert_eq!(store.head(0).await.unwrap(), Head { term: 1, seq: 2 });
    holder.send("a").await.unwrap();
    assert_eq!(seqs(&store, "a").await, 3);
}

/// All of a commit is sent before anything of it is answered.
#[tokio::test]
async fn a_commit_is_one_round_trip() {
    let database = Database::new();
    let proxy = Proxy::before(database.server.port());
    let store = Postgres::open(behind(&proxy, &database)).await.unwrap();
    let mut holder = Holder::claim(&store, 0).await;
    holder.send("a").await.unwrap(); // its statements are prepared now
    proxy.hold_answers();
    let sent = tokio::spawn(holder.send("a"));
    until("the server has committed", async || database.psql("SELECT seq FROM steadfast.shards WHERE id = 0") == "2").await;
    proxy.let_go();
    sent.await.unwrap().unwrap();
    assert_eq!(seqs(&store, "a").await, 2);
}

/// What was sent is on its way for longer than anybody waits for it. It arrives when the place in line has been given to another batch, and changes nothing.
#[tokio::test]
async fn a_commit_that_arrives_late_is_not_applied() {
    let database = Database::new();
    let proxy = Proxy::before(database.server.port());
    let (statement_timeout, connect_timeout) = (Duration::from_secs(5), Duration::from_secs(10));
    let store = Postgres::open(Settings { statement_timeout, connect_timeout, ..behind(&proxy, &database) })
        .await
        .unwrap();
    let mut holder = Holder::claim(&store, 0).await;
    holder.send("a").await.unwrap();
    proxy.hold_requests();
    let error = holder.fail("late").await;
    assert!(error.is_retryable() && error.to_string().contains("no answer came in time"), "{error}");
    assert_eq!(store.head(0).await.unwrap(), Head { term: 1, seq: 1 }, "it has not arrived, and never will");
    proxy.let_go();
    for seq in 2..=20 {
        holder.send("a").await.unwrap();
        assert_eq!(store.head(0).await.unwrap(), Head { term: 1, seq });
    }
    assert_eq!((seqs(&store, "a").await, seqs(&store, "late").await), (20, 0));
}

/// Connections are cut again and again, wherever a commit is just then.
#[tokio::test]
async fn what_head_says_after_a_cut_is_final() {
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let database = Database::new();
    let proxy = Proxy::before(database.server.port());
    let store = Postgres::open(behind(&proxy, &database)).await.unwrap();
    let mut holder = Holder::claim(&store, 0).await;
    proxy.lose(Some(Losses {
        seed,
        cut_after: Duration::from_millis(100)..=Duration::from_millis(400),
        stall: Duration::ZERO,
        swallow: 0.0,
    }));
    proxy.cut(); // this becomes of the next ones
    let (mut applied, mut lost, mut doubted) = (vec![], 0, 0);
    while doubted < 12 {
        // Each try writes something of its own, so that one that is applied later is not taken for the next one.
        let (before, id) = (holder.head, format!("try-{}", applied.len() + lost));
        let Err(error) = holder.send(&id).await else {
            applied.push(id);
            continue;
        };
        assert!(!matches!(error, Error::Gap { .. } | Error::Fenced { .. }), "what head said was not final: {error}");
        doubted += 1;
        let mut head = None;
        until("the store is back", async || {
            head = store.head(0).await.ok();
            head.is_some()
        })
        .await;
        assert!(head == Some(before) || head == Some(holder.head), "{head:?}");
        if head == Some(before) {
            holder.undo();
            lost += 1;
        } else {
            applied.push(id);
        }
    }
    proxy.lose(None);
    proxy.cut();
    println!("{} applied, {lost} lost, {doubted} in doubt", applied.len());
    until("the store is back", async || store.head(0).await.is_ok()).await;
    assert_eq!(store.head(0).await.unwrap().seq, applied.len() as u64);
    assert_eq!(database.psql("SELECT string_agg(workflow_id, ' ' ORDER BY place) FROM steadfast.workflow_events"), applied.join(" "));
}

/// The same though the server does not end the former connection when it is asked to, and all of it arrives: the id of the connection is enough.
#[tokio::test]
async fn a_commit_of_a_former_connection_is_refused_when_it_arrives() {
    let database = Database::new();
    database.psql(&format!(
        "CREATE FUNCTION public.pg_terminate_backend(pid integer) RETURNS boolean LANGUAGE sql AS 'SELECT false';
         ALTER DATABASE {} SET search_path = public, pg_catalog",
        database.name
    ));
    let proxy = Proxy::before(database.server.port());
    let (statement_timeout, connect_timeout) = (Duration::from_secs(2), Duration::from_secs(10));
    let store = Postgres::open(Settings { statement_timeout, connect_timeout, ..behind(&proxy, &database) })
        .await
        .unwrap();
    let mut holder = Holder::claim(&store, 0).await;
    holder.send("a").await.unwrap();
    proxy.hold_requests();
    holder.fail("late").await;
    assert_eq!(store.head(0).await.unwrap(), Head { term: 1, seq: 1 }, "it is on its way");
    let writers = || database.connections("application_name LIKE 'steadfast writer%'");
    assert_eq!(writers(), 2, "the former one is still there");
    proxy.let_go();
    until("it has arrived, and the end of its connection behind it", async || writers() == 1).await;
    assert_eq!(store.head(0).await.unwrap(), Head { term: 1, seq: 1 });
    holder.send("a").await.unwrap();
    assert_eq!((seqs(&store, "a").await, seqs(&store, "late").await), (2, 0));
}

/// A claim that arrives when nobody waits for it any more takes the shard from nobody.
#[tokio::test]
async fn a_claim_that_arrives_late_is_not_made() {
    let database = Database::new();
    let proxy = Proxy::before(database.server.port());
    let (statement_timeout, connect_timeout) = (Duration::from_secs(2), Duration::from_secs(10));
    let store = Postgres::open(Settings { statement_timeout, connect_timeout, ..behind(&proxy, &database) })
        .await
        .unwrap();
    store.claim(1).await.unwrap();
    let there = database.open().await;
    let mut holder = Holder::claim(&there, 0).await;
    proxy.hold_requests();
    assert!(store.claim(0).await.unwrap_err().is_retryable());
    proxy.let_go();
    until("it has arrived", async || database.connections("application_name LIKE 'steadfast writer%'") == 1).await;
    holder.send("a").await.unwrap();
    assert_eq!(holder.head.term, there.head(0).await.unwrap().term);
}

/// The connection breaks after the look and before anything is removed, and somebody else takes the shard. Nothing goes on over another connection.
#[tokio::test]
async fn a_sweep_that_is_cut_in_the_middle_removes_nothing() {
    let database = Database::new();
    let proxy = Proxy::before(database.server.port());
    let store = Postgres::open(behind(&proxy, &database)).await.unwrap();
    let ended = RunRow { status: Status::Completed, recover: None, ended_at: Some(new_year()), ..row("a") };
    let put = batch(&store, Batch { runs: vec![ended], ..Batch::default() }).await;
    store.commit(put).await.unwrap();
    let there = database.open().await;
    database.close_table("outbox");
    let sweeping = store.clone();
    let sweep = tokio::spawn(async move { sweeping.sweep(0, 1, &[Sweep { entity: entity("a"), ended_at: new_year() }]).await });
    until("it looks", async || database.connections("state = 'active' AND query LIKE '%outbox%'") == 1).await;
    proxy.hold_answers();
    database.open_tables();
    until("it has looked", async || database.connections("state = 'idle in transaction'") == 1).await;
    database.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'");
    until("its connection is gone", async || database.connections("state = 'idle in transaction'") == 0).await;
    assert_eq!(there.claim(0).await.unwrap().term, 2);
    proxy.let_go();
    // Nothing of this program moves on meanwhile: it gets the answer and the end of the connection at once.
    database.psql("SELECT pg_sleep(0.5)");
    assert!(sweep.await.unwrap().is_err());
    assert!(there.run(&run("a")).await.unwrap().is_some());
}
