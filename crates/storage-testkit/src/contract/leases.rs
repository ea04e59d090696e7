//! Checks shard leases: one owner per shard, and a former owner cannot write.
//!
//! Subject: `crates/store/src/leases.rs`.

use super::fixture::{Writer, event, events};
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::time::Duration;
use steadfast_store::{Error, Heard, Held, Leases, Member, ShardId, Store};

/// One store of 64 shards that several instances share, and its time.
#[async_trait]
pub trait LeaseHarness: Send + Sync {
    /// The leases under test.
    type Leases: Leases;
    /// The store whose shards they are on.
    type Store: Store;

    /// What another instance has: a handle on the leases, and one on the store that it joins by. All leases are equally long, and longer than a case takes, but
    /// shorter than half an hour.
    async fn instance(&self) -> (Self::Leases, Self::Store);

    /// Lets that much time pass for all.
    async fn pass(&self, time: Duration);

    /// What is heard next. Panics if that is nothing for much longer than it may take.
    async fn heard(&self, leases: &Self::Leases) -> Heard;
}

/// How many shards there are.
const SHARDS: usize = 64;

/// An instance that has an id, and a name and an address after it.
struct Node<H: LeaseHarness> {
    id: &'static str,
    leases: H::Leases,
    store: H::Store,
}

impl<H: LeaseHarness> Node<H> {
    async fn new(harness: &H, id: &'static str) -> Self {
        let (leases, store) = harness.instance().await;
        Node { id, leases, store }
    }

    async fn joined(harness: &H, id: &'static str) -> Self {
        let node = Node::new(harness, id).await;
        node.join(&node.member()).await;
        node
    }

    fn member(&self) -> Member {
        member(self.id, self.id, self.id)
    }

    async fn join(&self, member: &Member) {
        self.leases.join(member).await.unwrap();
    }

    async fn claim(&self, most: usize) -> Vec<Held> {
        self.leases.claim(self.id, most, &[]).await.unwrap()
    }

    /// Gives a shard away that it has taken as it was first taken by anybody.
    async fn release(&self, shard: ShardId, in_good_order: bool) {
        self.leases.release(self.id, first(shard), in_good_order).await.unwrap();
    }

    /// What it has.
    async fn held(&self) -> Vec<Held> {
        self.leases.beat(self.id).await.unwrap().unwrap().held
    }

    /// How many instances there are for it to share with.
    async fn counts(&self) -> usize {
        self.leases.beat(self.id).await.unwrap().unwrap().instances
    }

    /// From here on, only what happens is heard.
    async fn listen(&self, harness: &H) {
        let mut missing = BTreeSet::from(["Leases", "Commits"]);
        while !missing.is_empty() {
            missing.remove(match harness.heard(&self.leases).await {
                Heard::Leases => "Leases",
                Heard::Commits => "Commits",
            });
        }
        self.hears_nothing();
    }

    fn hears_nothing(&self) {
        assert_eq!(self.leases.heard().now_or_never(), None, "nothing has happened");
    }
}

fn member(id: &str, name: &str, address: &str) -> Member {
    Member { id: id.into(), name: name.into(), address: address.into(), version: "1.0.0".into() }
}

/// A shard that was nobody's before.
fn first(shard: ShardId) -> Held {
    Held { shard, epoch: 1, was_lost: false }
}

fn shards(held: &[Held]) -> Vec<ShardId> {
    held.iter().map(|held| held.shard).collect()
}

fn all(held: &[Held], was_lost: bool) -> bool {
    held.iter().all(|held| held.was_lost == was_lost)
}

/// Nobody has a shard who has not joined.
pub async fn whoever_has_not_joined_has_nothing<H: LeaseHarness>(harness: &H) {
    let node = Node::new(harness, "a").await;
    assert_eq!(node.leases.beat("a").await.unwrap(), None);
    assert_eq!(node.claim(SHARDS).await, []);
    assert!(!node.leases.drain("a", true).await.unwrap());
    node.release(0, true).await;
    node.leases.leave("a").await.unwrap();
    assert_eq!(node.leases.instances().await.unwrap(), []);
    let leases = node.leases.leases().await.unwrap();
    assert!(leases.iter().map(|lease| lease.shard).eq(0..64), "{leases:?}");
    assert!(leases.iter().all(|lease| lease.holder.is_none() && lease.is_over && lease.epoch == 0), "{leases:?}");
}

/// Each gets as many as it asks for and as there are, and nobody what another one has.
pub async fn shards_are_shared<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::joined(harness, "b").await);
    let first = a.claim(40).await;
    assert!(first.iter().copied().eq((0..40).map(self::first)), "{first:?}");
    let second = b.claim(usize::MAX).await;
    assert_eq!(shards(&second), (40..64).collect::<Vec<_>>());
    assert!(all(&first, false) && all(&second, false), "nobody had them");
    assert_eq!((a.claim(SHARDS).await, b.claim(SHARDS).await), (vec![], vec![]));
    assert_eq!(a.held().await, first);
    let leases = b.leases.leases().await.unwrap();
    assert!(
        leases
            .iter()
            .all(|lease| lease.holder.as_deref() == Some(if lease.shard < 40 { "a" } else { "b" }) && !lease.is_over)
    );
}

/// What is given away in good order has no holder, and has not been lost. Nobody gives away what another one has.
pub async fn what_is_given_back_is_free<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::joined(harness, "b").await);
    a.claim(4).await;
    assert_eq!(shards(&b.claim(2).await), [4, 5]);
    for shard in [1, 3, 5, 99, 1] {
        a.release(shard, true).await;
    }
    assert_eq!(a.held().await, [first(0), first(2)]);
    assert_eq!(b.held().await, [first(4), first(5)]);
    let leases = a.leases.leases().await.unwrap();
    assert!(leases[3].holder.is_none() && leases[3].is_over && !leases[5].is_over, "{leases:?}");
    let taken = b.claim(1).await;
    assert_eq!(taken, [Held { shard: 1, epoch: 2, was_lost: false }]);
}

/// What is given away while something was under way is free at once too, but was lost.
pub async fn what_is_given_away_under_way_is_lost<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::joined(harness, "b").await);
    a.claim(2).await;
    a.release(1, false).await;
    assert_eq!(a.held().await, [first(0)]);
    let leases = a.leases.leases().await.unwrap();
    assert!(leases[1].holder.as_deref() == Some("a") && leases[1].is_over, "{leases:?}");
    let taken = b.claim(1).await;
    assert_eq!(taken, [Held { shard: 1, epoch: 2, was_lost: true }]);
    assert_eq!(b.held().await, taken, "that is known for as long as it has it, also if it did not hear of it at first");
    b.leases.release("b", taken[0], true).await.unwrap();
    assert_eq!(a.claim(1).await, [Held { shard: 1, epoch: 3, was_lost: false }], "it was at rest after that");
}

/// A word that was on its way for long takes nothing from the one who has taken the shard again.
pub async fn what_was_given_away_late_is_not_given_away_twice<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::joined(harness, "b").await);
    a.claim(1).await;
    harness.pass(a.leases.lease()).await;
    assert_eq!(b.claim(1).await, [Held { shard: 0, epoch: 2, was_lost: true }]);
    harness.pass(a.leases.lease()).await;
    let again = a.claim(1).await;
    assert_eq!(again, [Held { shard: 0, epoch: 3, was_lost: true }]);
    a.release(0, true).await;
    assert_eq!(a.held().await, again, "that word was about another time");
}

/// Whoever does not beat loses what it has, and does not get it back by beating.
pub async fn a_lease_that_is_over_is_lost<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::joined(harness, "b").await);
    assert_eq!(a.claim(SHARDS).await.len(), SHARDS);
    harness.pass(a.leases.lease()).await;
    assert_eq!(a.held().await, []);
    let taken = b.claim(9).await;
    assert_eq!(shards(&taken), (0..9).collect::<Vec<_>>());
    assert!(all(&taken, true) && taken.iter().all(|held| held.epoch == 2));
    assert_eq!(shards(&a.claim(SHARDS).await), (9..64).collect::<Vec<_>>(), "what nobody else has taken it may take again");
}

/// A beat renews all that an instance has, from then on.
pub async fn a_beat_renews<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::joined(harness, "b").await);
    let (claimed, most_of_it) = (a.claim(3).await, a.leases.lease() * 2 / 3);
    for _ in 0..3 {
        harness.pass(most_of_it).await;
        assert_eq!(a.held().await, claimed);
    }
    harness.pass(most_of_it).await;
    assert!(shards(&b.claim(SHARDS).await).iter().eq(&(3..64).collect::<Vec<_>>()));
}

/// What somebody does not want is left to others.
pub async fn exceptions_are_not_taken<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::joined(harness, "b").await);
    assert_eq!(shards(&a.leases.claim("a", 3, &[1, 2, 60]).await.unwrap()), [0, 3, 4]);
    assert_eq!(shards(&b.claim(3).await), [1, 2, 5]);
}

/// One that drains keeps what it has until it gives it away, and gets no more until that is taken back.
pub async fn one_that_drains_gets_none<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::joined(harness, "b").await);
    a.claim(2).await;
    assert!(b.leases.drain("a", true).await.unwrap());
    assert!(b.leases.drain("a", true).await.unwrap(), "it may be asked for again");
    let beat = a.leases.beat("a").await.unwrap().unwrap();
    assert_eq!((beat.draining, beat.held.len()), (true, 2));
    assert_eq!(a.claim(1).await, []);
    assert!(a.leases.instances().await.unwrap()[0].draining);
    assert!(b.leases.drain("a", false).await.unwrap());
    assert!(!a.leases.beat("a").await.unwrap().unwrap().draining);
    assert_eq!(shards(&a.claim(1).await), [2]);
}

/// Those are counted that live and do not drain.
pub async fn living_instances_are_counted<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::joined(harness, "b").await);
    let c = Node::joined(harness, "c").await;
    assert_eq!((a.counts().await, b.counts().await, c.counts().await), (3, 3, 3));
    assert!(a.leases.drain("c", true).await.unwrap());
    assert_eq!((a.counts().await, c.counts().await), (2, 2));
    assert_eq!(a.leases.beat("a").await.unwrap().unwrap().others, 2, "one that drains lives");
    assert!(a.leases.drain("c", false).await.unwrap());
    harness.pass(a.leases.lease()).await;
    assert_eq!(a.counts().await, 1);
    assert_eq!(b.counts().await, 2);
    let instances = a.leases.instances().await.unwrap();
    assert!(instances.iter().map(|instance| &instance.member).eq(&[a.member(), b.member(), c.member()]), "{instances:?}");
    assert_eq!(instances.iter().map(|instance| instance.lives).collect::<Vec<_>>(), [true, true, false]);
    assert!(instances[0].silent < a.leases.lease() && instances[2].silent >= a.leases.lease(), "{instances:?}");
    assert!(instances[0].started_at <= instances[2].started_at, "{instances:?}");
    assert_eq!(c.counts().await, 3, "it was only slow");
}

/// One that leaves is gone, and has lost what it still had; not what it has given away before.
pub async fn one_that_leaves_loses_what_it_has<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::joined(harness, "b").await);
    a.claim(2).await;
    a.release(0, true).await;
    a.leases.leave("a").await.unwrap();
    a.leases.leave("a").await.unwrap();
    assert_eq!(a.leases.beat("a").await.unwrap(), None);
    assert_eq!((a.claim(1).await, b.counts().await), (vec![], 1));
    assert!(b.leases.instances().await.unwrap().iter().all(|instance| instance.member.id == "b"));
    let taken = b.claim(3).await;
    assert_eq!(taken.iter().map(|held| held.was_lost).collect::<Vec<_>>(), [false, true, false]);
}

/// Whoever comes to the place of another one is its next life: what that one had is lost to it at once, and it counts no more until it is heard of.
pub async fn a_next_life_has_what_the_former_one_had<H: LeaseHarness>(harness: &H) {
    let (a, b, other) = (Node::new(harness, "a").await, Node::new(harness, "b").await, Node::new(harness, "other").await);
    let (namesake, neighbour) = (member("namesake", "machine", "elsewhere"), member("neighbour", "other", "here"));
    a.join(&member("a", "machine", "here")).await;
    for member in [&namesake, &neighbour] {
        other.join(member).await;
        assert_eq!(other.leases.claim(&member.id, 2, &[]).await.unwrap().len(), 2);
    }
    assert_eq!(shards(&a.claim(2).await), [4, 5]);
    b.join(&member("b", "machine", "here")).await;
    assert_eq!(a.leases.leases().await.unwrap().iter().filter(|lease| !lease.is_over).count(), 4, "those of the others are theirs");
    assert_eq!(b.counts().await, 3);
    let taken = b.claim(3).await;
    assert_eq!(taken.iter().map(|held| (held.shard, held.was_lost)).collect::<Vec<_>>(), [(4, true), (5, true), (6, false)]);
    assert_eq!(a.held().await, []);
    assert_eq!(b.counts().await, 4, "the former one lives after all");
}

/// One that ends lets go of its address before it is done: whoever comes to its place takes nothing from it.
pub async fn one_that_drains_is_not_taken_for_dead<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::new(harness, "a").await, Node::new(harness, "b").await);
    a.join(&member("a", "machine", "here")).await;
    a.claim(2).await;
    assert!(a.leases.drain("a", true).await.unwrap());
    b.join(&member("b", "machine", "here")).await;
    assert_eq!(a.held().await, [first(0), first(1)]);
    assert!(b.leases.instances().await.unwrap().iter().all(|instance| instance.lives));
    a.release(0, true).await;
    assert_eq!(b.claim(1).await, [Held { shard: 0, epoch: 2, was_lost: false }]);
}

/// To join again takes nothing away from oneself.
pub async fn one_may_join_again<H: LeaseHarness>(harness: &H) {
    let a = Node::joined(harness, "a").await;
    a.claim(2).await;
    assert!(a.leases.drain("a", true).await.unwrap());
    a.join(&a.member()).await;
    let beat = a.leases.beat("a").await.unwrap().unwrap();
    assert_eq!((beat.held.len(), beat.draining, beat.instances), (2, false, 1));
}

/// Of whom nothing was heard for long is taken out when somebody joins, and hears that.
pub async fn the_long_silent_are_taken_out<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::joined(harness, "b").await);
    a.claim(1).await;
    harness.pass(Duration::from_secs(1800)).await;
    assert_eq!(b.held().await, []);
    harness.pass(Duration::from_secs(1900)).await;
    let c = Node::joined(harness, "c").await;
    assert_eq!(a.leases.beat("a").await.unwrap(), None);
    let ids: Vec<_> = c.leases.instances().await.unwrap().into_iter().map(|instance| instance.member.id).collect();
    assert_eq!(ids, ["b", "c"]);
    assert!(all(&c.claim(1).await, true), "what it had was lost");
}

/// Whoever takes a shard can be sure that nobody else writes it.
pub async fn a_former_holder_is_fenced<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::joined(harness, "b").await);
    a.claim(2).await;
    let (mut kept, mut lost) = (Writer::claim(&a.store, 0).await, Writer::claim(&a.store, 1).await);
    kept.write(events([event("kept", 1)])).await;
    lost.write(events([event("lost", 1)])).await;
    a.release(1, false).await;
    assert_eq!(shards(&b.claim(1).await), [1]);
    let error = lost.fail(events([event("lost", 2)])).await;
    assert!(matches!(error, Error::Fenced { shard: 1, .. }), "{error:?}");
    let mut taken = Writer::claim(&b.store, 1).await;
    assert_eq!(taken.head.seq, 1);
    taken.write(events([event("lost", 2)])).await;
    kept.write(events([event("kept", 2)])).await;
}

/// One that was paused between its lease and its first word to the store does not take the shard away from the next holder.
pub async fn a_claim_of_the_store_needs_the_lease<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::joined(harness, "b").await);
    a.claim(2).await;
    a.store.claim(0).await.unwrap();
    harness.pass(a.leases.lease()).await;
    let error = a.store.claim(1).await.unwrap_err();
    assert!(matches!(error, Error::Fenced { shard: 1, .. }), "its lease is over: {error:?}");
    assert_eq!(shards(&b.claim(2).await), [0, 1]);
    let mut writer = Writer::claim(&b.store, 1).await;
    for (node, shard) in [(&a, 1), (&a, 5), (&b, 5)] {
        let error = node.store.claim(shard).await.unwrap_err();
        assert!(matches!(error, Error::Fenced { shard: of, .. } if of == shard), "{error:?}");
    }
    writer.write(events([event("a", 1)])).await;
    b.leases.leave("b").await.unwrap();
    assert!(b.store.claim(1).await.is_err(), "it has left");
}

/// However many claim at once, nobody gets what another one has.
pub async fn a_shard_is_never_two_instances<H: LeaseHarness>(harness: &H) {
    let nodes = [
        Node::joined(harness, "a").await,
        Node::joined(harness, "b").await,
        Node::joined(harness, "c").await,
        Node::joined(harness, "d").await,
    ];
    for round in 1..=4 {
        let claims = join_all(nodes.iter().flat_map(|node| [(); 4].map(|()| node.claim(9)))).await;
        let mut claims: Vec<_> = claims.into_iter().flatten().collect();
        claims.extend(nodes[0].claim(SHARDS).await);
        assert!(claims.iter().all(|held| held.epoch == round && held.was_lost == (round > 1)), "{claims:?}");
        assert_eq!(shards(&claims).into_iter().collect::<BTreeSet<_>>().len(), claims.len(), "one was given twice");
        assert_eq!(claims.len(), SHARDS);
        harness.pass(nodes[0].leases.lease()).await;
    }
}

/// The others hear of everything that concerns leases.
pub async fn changes_of_leases_are_heard<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::new(harness, "b").await);
    a.listen(harness).await;
    let heard = async |what: &str| {
        assert_eq!(harness.heard(&a.leases).await, Heard::Leases, "{what}");
        a.hears_nothing();
    };
    b.join(&b.member()).await;
    heard("joined").await;
    b.claim(1).await;
    heard("claimed").await;
    b.held().await;
    b.release(0, true).await;
    heard("released").await;
    let again = b.claim(1).await;
    heard("claimed again").await;
    b.leases.release("b", again[0], false).await.unwrap();
    heard("lost").await;
    b.leases.drain("a", true).await.unwrap();
    heard("drained").await;
    b.leases.leave("b").await.unwrap();
    heard("left").await;
}

/// The others hear of commits, and whoever has made them does not.
pub async fn commits_are_heard_by_the_others<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::joined(harness, "b").await);
    assert_eq!((a.counts().await, b.counts().await), (2, 2));
    a.listen(harness).await;
    b.listen(harness).await;
    for _ in 0..3 {
        a.leases.committed();
        assert_eq!(harness.heard(&b.leases).await, Heard::Commits);
    }
    b.leases.drain("b", true).await.unwrap();
    assert_eq!(harness.heard(&a.leases).await, Heard::Leases, "which comes after those commits");
    a.hears_nothing();
    b.leases.committed();
    assert_eq!(harness.heard(&a.leases).await, Heard::Commits, "one that drains is heard, too");
}

/// Nothing is lost if somebody who waits goes away.
pub async fn what_is_heard_waits_for_whoever_asks<H: LeaseHarness>(harness: &H) {
    let (a, b) = (Node::joined(harness, "a").await, Node::new(harness, "b").await);
    a.listen(harness).await;
    drop(a.leases.heard());
    a.hears_nothing();
    b.join(&b.member()).await;
    assert_eq!(harness.heard(&a.leases).await, Heard::Leases);
}
