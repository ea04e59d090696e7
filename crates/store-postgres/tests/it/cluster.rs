//! Leases: one holder per shard by the clock of the database, and a former holder that cannot write.

use crate::fixture::{Database, Holder, until};
use futures_util::future::{join, join_all};
use futures_util::{StreamExt, stream};
use std::collections::BTreeSet;
use std::time::Duration;
use steadfast_store::{Error, ShardId};
use steadfast_store_postgres::cluster::{Cluster, Held, Member};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(3600);

async fn join_as(cluster: &Cluster, id: &str) {
    let (name, address, version) = ("a machine".into(), "http://127.0.0.1:7770".into(), "1.0.0".into());
    cluster.join(&Member { id: id.into(), name, address, version }).await.unwrap();
}

fn shards(held: &[Held]) -> Vec<ShardId> {
    held.iter().map(|held| held.shard).collect()
}

/// The time of all leases of an instance is over, as if it had slept.
fn expire(database: &Database, id: &str) {
    database.psql(&format!("UPDATE steadfast.leases SET until = clock_timestamp() WHERE holder = '{id}'"));
}

#[tokio::test]
async fn shards_are_shared_and_given_back() {
    let database = Database::new();
    let store = database.open().await;
    let cluster = store.cluster();
    assert_eq!(cluster.claim("a", LONG, 64).await.unwrap(), [], "whoever has not joined gets nothing");
    assert_eq!(cluster.beat("a", LONG).await.unwrap(), None);
    join_as(&cluster, "a").await;
    join_as(&cluster, "b").await;
    let first = cluster.claim("a", LONG, 40).await.unwrap();
    assert!(first.iter().map(|held| (held.shard, held.epoch)).eq((0..40).map(|shard| (shard, 1))), "{first:?}");
    let second = cluster.claim("b", LONG, 64).await.unwrap();
    assert_eq!(shards(&second), (40..64).collect::<Vec<_>>());
    assert_eq!(cluster.claim("b", LONG, 64).await.unwrap(), []);
    assert_eq!(cluster.release("a", &[3, 7, 50]).await.unwrap(), [3, 7], "one that is another's stays");
    let third = cluster.claim("b", LONG, 1).await.unwrap();
    assert_eq!((third[0].shard, third[0].epoch), (3, 2));
    let beat = cluster.beat("a", LONG).await.unwrap().unwrap();
    assert_eq!((beat.held.len(), beat.draining), (38, false));
    assert!(
        beat.held
            .iter()
            .zip(first.iter().filter(|held| held.shard != 3 && held.shard != 7))
            .all(|(now, then)| now.until > then.until)
    );
    let leases = cluster.leases().await.unwrap();
    assert_eq!(leases.iter().filter(|lease| lease.holder.as_deref() == Some("b") && !lease.is_over).count(), 25);
    assert_eq!((leases[7].holder.as_deref(), leases[7].is_over), (None, true));
    assert_eq!(cluster.leave("a").await.unwrap().len(), 38);
    assert_eq!(
        cluster
            .instances()
            .await
            .unwrap()
            .iter()
            .map(|instance| instance.member.id.as_str())
            .collect::<Vec<_>>(),
        ["b"]
    );
}

/// However many claim at once, nobody gets what another one has.
#[tokio::test]
async fn a_shard_is_never_two_instances() {
    let database = Database::new();
    let store = database.open().await;
    let cluster = store.cluster();
    let ids = ["a", "b", "c", "d"];
    for id in ids {
        join_as(&cluster, id).await;
    }
    for round in 1..=5 {
        let claims = join_all(ids.iter().flat_map(|id| [(); 4].map(|()| cluster.claim(id, LONG, 9)))).await;
        let claims: Vec<_> = claims.into_iter().flat_map(Result::unwrap).collect();
        assert!(claims.iter().all(|held| held.epoch == round));
        assert_eq!(claims.iter().map(|held| held.shard).collect::<BTreeSet<_>>().len(), claims.len(), "one was given twice");
        assert_eq!(claims.len() + cluster.claim("a", LONG, 64).await.unwrap().len(), 64);
        ids.iter().for_each(|id| expire(&database, id));
    }
}

/// One that was paused finds its leases gone though it beats, and what it commits is refused as soon as somebody else has them.
#[tokio::test]
async fn a_paused_holder_is_fenced_with_the_lease() {
    let database = Database::new();
    let (here, there) = (database.open().await, database.open().await);
    let (first, second) = (here.cluster(), there.cluster());
    join(join_as(&first, "a"), join_as(&second, "b")).await;
    assert_eq!(first.claim("a", LONG, 2).await.unwrap().len(), 2);
    let (mut kept, mut lost) = (Holder::claim(&here, 0).await, Holder::claim(&here, 1).await);
    kept.send("kept").await.unwrap();
    lost.send("lost").await.unwrap();
    database.psql("UPDATE steadfast.leases SET until = clock_timestamp() WHERE shard = 1");
    let beat = first.beat("a", LONG).await.unwrap().unwrap();
    assert_eq!(shards(&beat.held), [0], "a lease that is over is not renewed");
    lost.send("lost").await.unwrap();
    assert_eq!(shards(&second.claim("b", LONG, 1).await.unwrap()), [1]);
    let error = lost.fail("lost").await;
    assert!(matches!(error, Error::Fenced { shard: 1, .. }), "{error:?}");
    let mut taken = Holder::claim(&there, 1).await;
    assert_eq!(taken.head.seq, 2);
    taken.send("taken").await.unwrap();
    kept.send("kept").await.unwrap();
}

/// Time passes by itself, too.
#[tokio::test]
async fn a_lease_ends_if_nobody_renews_it() {
    let database = Database::new();
    let store = database.open().await;
    let cluster = store.cluster();
    join_as(&cluster, "a").await;
    join_as(&cluster, "b").await;
    assert_eq!(cluster.claim("a", Duration::from_millis(50), 64).await.unwrap().len(), 64);
    until("the leases are over", async || !cluster.claim("b", LONG, 64).await.unwrap().is_empty()).await;
    assert_eq!(cluster.beat("a", LONG).await.unwrap().unwrap().held, []);
}

#[tokio::test]
async fn one_that_drains_gets_no_more() {
    let database = Database::new();
    let store = database.open().await;
    let cluster = store.cluster();
    join_as(&cluster, "a").await;
    cluster.claim("a", LONG, 1).await.unwrap();
    assert!(cluster.drain("a", true).await.unwrap() && !cluster.drain("nobody", true).await.unwrap());
    assert_eq!(cluster.claim("a", LONG, 1).await.unwrap(), []);
    let beat = cluster.beat("a", LONG).await.unwrap().unwrap();
    assert_eq!((beat.draining, beat.held.len()), (true, 1));
    assert!(cluster.drain("a", false).await.unwrap());
    assert_eq!(cluster.claim("a", LONG, 1).await.unwrap().len(), 1);
    let instances = cluster.instances().await.unwrap();
    assert_eq!((instances[0].member.name.as_str(), instances[0].draining), ("a machine", false));
}

/// Whoever listens hears of every shard that changes hands.
#[tokio::test]
async fn changes_of_holders_are_told() {
    let database = Database::new();
    let store = database.open().await;
    let (client, mut speaking) = tokio_postgres::connect(&database.server.url(&database.name), tokio_postgres::NoTls).await.unwrap();
    let mut messages = Box::pin(stream::poll_fn(move |context| speaking.poll_message(context)));
    let listening = client.batch_execute("LISTEN steadfast_leases");
    let (listening, cluster) = (Box::pin(listening), store.cluster());
    let told = tokio::spawn(async move {
        let mut told = vec![];
        while told.len() < 3 {
            if let Some(Ok(tokio_postgres::AsyncMessage::Notification(note))) = messages.next().await {
                told.push(note.payload().to_owned());
            }
        }
        told
    });
    listening.await.unwrap();
    join_as(&cluster, "a").await;
    cluster.claim("a", LONG, 2).await.unwrap();
    cluster.beat("a", LONG).await.unwrap();
    cluster.release("a", &[1]).await.unwrap();
    assert_eq!(told.await.unwrap(), ["0", "1", "1"]);
}
