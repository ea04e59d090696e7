//! Commits whose outcome nobody heard: `head` tells what became of them, once and for all.

use crate::fixture::{Database, Holder, seqs, settings, until};
use std::time::Duration;
use steadfast_store::{Head, Store};
use steadfast_store_postgres::{Postgres, Settings};
use steadfast_test_servers::{Losses, Proxy};

fn behind(proxy: &Proxy, database: &Database) -> Settings {
    let url = database
        .server
        .url(&database.name)
        .replace(&format!(":{}/", database.server.port()), &format!(":{}/", proxy.port()));
    settings(url)
}

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
    let (mut applied, mut lost, mut doubted) = (0, 0, 0);
    while doubted < 12 {
        let before = holder.head;
        let outcome = holder.send("a").await;
        if outcome.is_ok() {
            applied += 1;
            continue;
        }
        doubted += 1;
        until("the store is back", async || store.head(0).await.is_ok()).await;
        let head = loop {
            if let Ok(head) = store.head(0).await {
                break head;
            }
        };
        assert!(head == before || head == holder.head, "{head:?}");
        if head == before {
            holder.undo();
            lost += 1;
        } else {
            applied += 1;
        }
    }
    proxy.lose(None);
    proxy.cut();
    println!("{applied} applied, {lost} lost, {doubted} in doubt");
    until("the store is back", async || store.head(0).await.is_ok()).await;
    assert_eq!(store.head(0).await.unwrap().seq, applied);
    assert_eq!(
        database.psql("SELECT count(*), max(sequence), max(place) FROM steadfast.workflow_events"),
        format!("{applied}|{applied}|{applied}")
    );
}
