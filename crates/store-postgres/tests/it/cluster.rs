//! Leases: the suite that all of them pass, by the clock of a real database, and what others hear.

use crate::fixture::{Database, Holder, behind, until};
use async_trait::async_trait;
use futures_util::future::join;
use futures_util::{FutureExt, StreamExt, stream};
use std::time::Duration;
use steadfast_storage_testkit::contract::leases::LeaseHarness;
use steadfast_store::{Error, Heard, Held, Leases, Member, ShardId, Store};
use steadfast_store_postgres::Postgres;
use steadfast_store_postgres::cluster::Cluster;
use steadfast_test_servers::Proxy;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::Instant;
use tokio_postgres::{AsyncMessage, NoTls};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(900);

#[async_trait]
impl LeaseHarness for Database {
    type Leases = Cluster;
    type Store = Postgres;

    async fn instance(&self) -> (Cluster, Postgres) {
        let store = self.open().await;
        (store.leases(LONG), store)
    }

    /// Nobody moves the clock of a server; so all that has happened was earlier.
    async fn pass(&self, time: Duration) {
        let ago = format!("interval '{} ms'", time.as_millis());
        self.psql(&format!(
            "UPDATE steadfast.leases SET until = until - {ago} WHERE holder IS NOT NULL;
             UPDATE steadfast.instances SET beat_at = beat_at - {ago}, started_at = started_at - {ago}"
        ));
    }

    async fn heard(&self, leases: &Cluster) -> Heard {
        soon(leases.heard()).await
    }
}

steadfast_storage_testkit::lease_contract_tests!(Database::new());

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.unwrap()
}

async fn join_as(cluster: &Cluster, id: &str) {
    let version = "1.0.0".into();
    cluster.join(&Member { id: id.into(), name: id.into(), address: id.into(), version }).await.unwrap();
}

fn shards(held: &[Held]) -> Vec<ShardId> {
    held.iter().map(|held| held.shard).collect()
}

/// What is told on those channels from now on: each the channel and the text.
async fn notes(database: &Database, channels: &[&str]) -> UnboundedReceiver<(String, String)> {
    let (client, mut speaking) = tokio_postgres::connect(&database.server.url(&database.name), NoTls).await.unwrap();
    let (sender, notes) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages = Box::pin(stream::poll_fn(move |context| speaking.poll_message(context)));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(note) = message
                && sender.send((note.channel().to_owned(), note.payload().to_owned())).is_err()
            {
                return;
            }
        }
    });
    for channel in channels {
        client.batch_execute(&format!("LISTEN {channel}")).await.unwrap();
    }
    tokio::spawn(async move {
        let _it_listens_as_long_as_it_is_there = client;
        std::future::pending::<()>().await;
    });
    notes
}

/// What was told until now on the channel of commits.
async fn told(database: &Database, notes: &mut UnboundedReceiver<(String, String)>) -> Vec<String> {
    database.psql("NOTIFY steadfast_commits, 'until now'");
    let mut told = vec![];
    loop {
        match soon(notes.recv()).await.unwrap() {
            (_, text) if text == "until now" => return told,
            (_, text) => told.push(text),
        }
    }
}

/// Until both were heard, as they are when somebody begins to listen.
async fn listen(cluster: &Cluster) {
    let both = [soon(cluster.heard()).await, soon(cluster.heard()).await];
    assert_eq!(both, [Heard::Leases, Heard::Commits]);
}

/// One that was paused finds its leases gone though it beats; it can write as long as nobody else has them, and no longer.
#[tokio::test]
async fn a_paused_holder_is_fenced_with_the_lease() {
    let database = Database::new();
    let ((first, here), (second, there)) = (database.instance().await, database.instance().await);
    join_as(&first, "a").await;
    join_as(&second, "b").await;
    assert_eq!(first.claim("a", 2, &[]).await.unwrap().len(), 2);
    let (mut kept, mut lost) = (Holder::claim(&here, 0).await, Holder::claim(&here, 1).await);
    kept.send("kept").await.unwrap();
    lost.send("lost").await.unwrap();
    database.psql("UPDATE steadfast.leases SET until = clock_timestamp() WHERE shard = 1");
    let beat = first.beat("a").await.unwrap().unwrap();
    assert!(beat.held.iter().map(|held| held.shard).eq([0]), "a lease that is over is not renewed");
    lost.send("lost").await.unwrap();
    assert_eq!(shards(&second.claim("b", 1, &[]).await.unwrap()), [1]);
    let error = lost.fail("lost").await;
    assert!(matches!(error, Error::Fenced { shard: 1, .. }), "{error:?}");
    let mut taken = Holder::claim(&there, 1).await;
    assert_eq!(taken.head.seq, 2);
    taken.send("taken").await.unwrap();
    kept.send("kept").await.unwrap();
}

/// The clock of the database ends leases by itself.
#[tokio::test]
async fn a_lease_ends_without_anybody() {
    let database = Database::new();
    let store = database.open().await;
    let (short, long) = (store.leases(Duration::from_millis(50)), store.leases(LONG));
    join_as(&short, "a").await;
    join_as(&long, "b").await;
    assert_eq!(short.claim("a", 64, &[]).await.unwrap().len(), 64);
    until("the leases are over", async || !long.claim("b", 64, &[]).await.unwrap().is_empty()).await;
    assert_eq!(short.beat("a").await.unwrap().unwrap().held, []);
}

/// A shard that the store does not have is nobody's, whatever stands in the tables.
#[tokio::test]
async fn shards_beyond_the_store_are_not_claimed() {
    let database = Database::new();
    let (cluster, _store) = database.instance().await;
    database.psql("INSERT INTO steadfast.shards (id) VALUES (64); INSERT INTO steadfast.leases (shard) VALUES (64)");
    join_as(&cluster, "a").await;
    assert_eq!(shards(&cluster.claim("a", 99, &[]).await.unwrap()), (0..64).collect::<Vec<_>>());
    assert_eq!(cluster.leases().await.unwrap().len(), 64);
}

/// A store by which nobody has joined claims what it wants, also while others have leases.
#[tokio::test]
async fn a_store_without_an_instance_needs_no_lease() {
    let database = Database::new();
    let ((cluster, _store), other) = (database.instance().await, database.open().await);
    join_as(&cluster, "a").await;
    cluster.claim("a", 1, &[]).await.unwrap();
    assert_eq!(other.claim(0).await.unwrap().term, 2);
}

/// Whoever listens hears of every shard that changes hands, and of all else without one.
#[tokio::test]
async fn changes_of_holders_are_told() {
    let database = Database::new();
    let (cluster, _store) = database.instance().await;
    let mut notes = notes(&database, &["steadfast_leases"]).await;
    join_as(&cluster, "a").await;
    cluster.claim("a", 2, &[]).await.unwrap();
    cluster.beat("a").await.unwrap();
    cluster.release("a", Held { shard: 1, epoch: 1, was_lost: false }, true).await.unwrap();
    cluster.drain("a", true).await.unwrap();
    cluster.leave("a").await.unwrap();
    for expected in ["", "0", "1", "1", "", ""] {
        assert_eq!(soon(notes.recv()).await.unwrap().1, expected);
    }
}

/// Who is alone tells nobody of its commits; with others there, many are told at once.
#[tokio::test]
async fn commits_are_told_to_others_and_seldom() {
    let database = Database::new();
    let ((first, _here), (second, _there)) = (database.instance().await, database.instance().await);
    let mut notes = notes(&database, &["steadfast_commits"]).await;
    first.committed();
    join_as(&first, "a").await;
    first.beat("a").await.unwrap();
    for _ in 0..10 {
        first.committed();
        tokio::task::yield_now().await;
    }
    join_as(&second, "b").await;
    first.beat("a").await.unwrap();
    assert_eq!(told(&database, &mut notes).await, [""; 0], "nobody else was there");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(300) {
        first.committed();
        tokio::task::yield_now().await;
    }
    let (_, who) = soon(notes.recv()).await.unwrap();
    let told = told(&database, &mut notes).await;
    let most = begun.elapsed().as_millis() / 50 + 1;
    assert!(told.len() as u128 <= most && told.iter().all(|text| *text == who), "{told:?} of at most {most}");
    assert!(!who.is_empty());
}

/// A listener whose connection ends makes another one, and says that something may have been missed.
#[tokio::test]
async fn a_listener_comes_back() {
    let database = Database::new();
    let ((first, _here), (second, _there)) = (database.instance().await, database.instance().await);
    let listeners = || database.connections("application_name = 'steadfast listener'");
    assert_eq!(listeners(), 0, "nobody has listened yet");
    listen(&first).await;
    assert_eq!((listeners(), first.heard().now_or_never()), (1, None));
    database.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'steadfast listener' AND datname = current_database()");
    listen(&first).await;
    join_as(&second, "b").await;
    assert_eq!(soon(first.heard()).await, Heard::Leases);
    drop(first);
    until("the listener is gone", async || listeners() == 0).await;
}

/// Somebody who waits in vain is reminded to look after the length of a lease, and the database is not asked for that.
#[tokio::test]
async fn a_listener_asks_nothing() {
    let database = Database::new();
    let store = database.open().await;
    let cluster = store.leases(Duration::from_millis(50));
    cluster.heard().await;
    let asked =
        "SELECT query_start || query FROM pg_stat_activity WHERE application_name = 'steadfast listener' AND datname = current_database()";
    until("it listens", async || database.psql(asked).contains("LISTEN")).await;
    let (before, mut reminded) = (database.psql(asked), vec![]);
    while reminded.len() < 8 {
        reminded.push(soon(cluster.heard()).await);
    }
    assert_eq!(reminded[4..], [Heard::Commits; 4], "whoever keeps leases looks by itself");
    assert_eq!(database.psql(asked), before);
}

/// A server that has moved elsewhere, or a network that has forgotten its connections, answers nothing and ends nothing: whoever asks again is not held up by what was asked before.
#[tokio::test]
async fn leases_are_renewed_though_their_connections_hang() {
    let database = Database::new();
    let proxy = Proxy::before(database.server.port());
    let store = Postgres::open(behind(&proxy, &database)).await.unwrap();
    let cluster = store.leases(LONG);
    join_as(&cluster, "a").await;
    let (beat, instances) = join(cluster.beat("a"), cluster.instances()).await;
    assert!(beat.unwrap().is_some() && instances.unwrap().len() == 1, "by two connections");
    proxy.hold_requests();
    assert!(tokio::time::timeout(Duration::from_secs(1), cluster.beat("a")).await.is_err(), "it hangs");
    assert!(soon(cluster.beat("a")).await.unwrap().is_some());
}
