//! Who has which shard, as instances come and go.
//!
//! Subject: `crates/runtime/src/cluster/keeper/mod.rs`.
//! Subject: `crates/runtime/src/cluster/round.rs`.

use super::{LEASE, World, within};
use crate::support::until;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use steadfast::cluster::Member;
use steadfast_store::memory::MemoryLeases;
use steadfast_store::{Beat, Error, Heard, Held, Instance, Lease, Leases};

/// Leases of a database that takes long to tell who has what, and cannot tell it as long as that is so.
pub(super) struct Slow(pub(super) MemoryLeases, pub(super) Arc<AtomicBool>);

#[async_trait]
impl Leases for Slow {
    fn lease(&self) -> Duration {
        self.0.lease()
    }

    async fn join(&self, member: &Member) -> Result<(), Error> {
        self.0.join(member).await
    }

    async fn beat(&self, id: &str) -> Result<Option<Beat>, Error> {
        self.0.beat(id).await
    }

    async fn claim(&self, id: &str, most: usize, except: &[u32]) -> Result<Vec<Held>, Error> {
        tokio::time::sleep(LEASE / 4).await;
        self.0.claim(id, most, except).await
    }

    async fn release(&self, id: &str, held: Held, in_good_order: bool) -> Result<(), Error> {
        self.0.release(id, held, in_good_order).await
    }

    async fn drain(&self, id: &str, draining: bool) -> Result<bool, Error> {
        self.0.drain(id, draining).await
    }

    async fn leave(&self, id: &str) -> Result<(), Error> {
        self.0.leave(id).await
    }

    async fn instances(&self) -> Result<Vec<Instance>, Error> {
        self.0.instances().await
    }

    async fn leases(&self) -> Result<Vec<Lease>, Error> {
        tokio::time::sleep(LEASE / 4).await;
        match self.1.load(Ordering::SeqCst) {
            false => self.0.leases().await,
            true => Err(Error::Unavailable { what: "nobody knows".into(), source: None }),
        }
    }

    fn committed(&self) {
        self.0.committed();
    }

    async fn heard(&self) -> Heard {
        self.0.heard().await
    }
}

/// To look who has what, to take what is free and to look again takes most of a lease here: leases are renewed all the same.
#[tokio::test(start_paused = true)]
async fn leases_are_renewed_while_it_is_looked_who_has_what() {
    let world = World::new(8);
    let slow = world.start_by("slow", |leases| Arc::new(Slow(leases, Arc::default())), |builder| builder).await;
    let mut others = Vec::new();
    for number in 0..3 {
        others.push(world.start(&format!("other-{number}"), |builder| builder).await);
    }
    until("they share", async || slow.has(2).await).await;
    others.drain(..).for_each(super::Instance::crash);
    for _ in 0..600 {
        tokio::time::sleep(LEASE / 100).await;
        assert!(slow.engine.health().is_well() && !slow.has(0).await, "it has lost what it had");
    }
    assert!(slow.has(8).await, "it has all in the end");
}

#[tokio::test(start_paused = true)]
async fn one_alone_has_everything_at_once() {
    let world = World::new(8);
    let a = world.start("a", |builder| builder).await;
    assert_eq!(a.shards().await, (0..8).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_gets_a_fair_share() {
    let world = World::new(8);
    let a = world.start("a", |builder| builder).await;
    let b = world.start("b", |builder| builder).await;
    until("they share", async || a.has(4).await && b.has(4).await).await;
    let c = world.start("c", |builder| builder).await;
    until("three share", async || a.has(3).await && b.has(3).await && c.has(2).await).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_in_good_order_gives_everything_away_at_once() {
    let world = World::new(8);
    let a = world.start("a", |builder| builder).await;
    let b = world.start("b", |builder| builder).await;
    until("they share", async || a.has(4).await && b.has(4).await).await;
    let before = tokio::time::Instant::now();
    b.stop().await;
    until("the other has all", async || a.has(8).await).await;
    assert!(before.elapsed() < LEASE / 4, "nobody has waited for a lease: {:?}", before.elapsed());
    assert_eq!(a.engine.cluster().await.unwrap().unwrap().instances.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_shards_of_one_that_has_died_are_taken_when_their_time_is_over() {
    for later in (0..12_000).step_by(700) {
        let world = World::new(8);
        let a = world.start("a", |builder| builder).await;
        let b = world.start("b", |builder| builder).await;
        until("they share", async || a.has(4).await && b.has(4).await).await;
        tokio::time::sleep(Duration::from_millis(later)).await; // whenever it was last heard of
        let before = tokio::time::Instant::now();
        b.crash();
        while !a.has(8).await {
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(before.elapsed() < LEASE + Duration::from_secs(2), "it takes too long if it dies {later} ms after that");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_to_drain_has_nothing_until_that_is_taken_back() {
    let world = World::new(8);
    let a = world.start("a", |builder| builder).await;
    let b = world.start("b", |builder| builder).await;
    until("they share", async || a.has(4).await && b.has(4).await).await;
    assert!(a.engine.drain_instance("b", true).await.unwrap());
    until("it has nothing", async || a.has(8).await && b.has(0).await).await;
    assert!(b.engine.drain_instance("b", false).await.unwrap());
    until("it has its share", async || a.has(4).await && b.has(4).await).await;
    assert!(!a.engine.drain_instance("nobody", true).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_renew_stops_before_another_may_begin() {
    let world = World::new(4);
    let a = world.start("a", |builder| builder).await;
    a.store.crash(); // its way to the database is cut; the process lives on
    tokio::time::sleep(LEASE - LEASE / 20).await;
    assert!(!a.engine.health().is_well());
    let b = world.start("b", |builder| builder).await;
    while !b.has(4).await {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// An older program does not understand what is in a shard: another one takes it, though it has its share already, and keeps it.
#[tokio::test(start_paused = true)]
async fn a_shard_that_one_cannot_open_is_taken_by_another_that_has_its_share() {
    let world = World::new(8);
    let b = world.start("b", |builder| builder).await;
    let older = world.store.another();
    older.faults().unreadable(7); // which b gives away first
    let a = world.start_on("a", older, |leases| Arc::new(leases), |builder| builder).await;
    within(5 * LEASE, "it is not left alone", async || b.shards().await.contains(&7) && a.has(3).await && b.has(5).await).await;
    for _ in 0..20 {
        tokio::time::sleep(LEASE / 2).await;
        assert!(b.shards().await.contains(&7) && a.has(3).await, "it stays there, and nothing else goes for it");
    }
}

/// One that can open others starts with them.
#[tokio::test(start_paused = true)]
async fn a_shard_that_cannot_be_opened_keeps_nobody_from_starting() {
    let world = World::new(4);
    let store = world.store.another();
    store.faults().unreadable(1);
    let a = world.start_on("a", store, |leases| Arc::new(leases), |builder| builder).await;
    until("it has the others", async || a.has(3).await).await;
}

/// Nor from taking over what another one had.
#[tokio::test(start_paused = true)]
async fn a_shard_that_cannot_be_opened_holds_up_no_take_over() {
    let world = World::new(8);
    let start = async |id: &str| {
        let store = world.store.another();
        store.faults().unreadable(7);
        world.start_on(id, store, |leases| Arc::new(leases), |builder| builder).await
    };
    let a = start("a").await;
    for later in [0, 1_700, 3_300, 5_100, 7_700, 9_900] {
        let b = start(&format!("b-{later}")).await;
        within(5 * LEASE, "they share", async || a.shards().await.len() + b.shards().await.len() >= 7 && b.shards().await.len() >= 3).await;
        tokio::time::sleep(2 * LEASE + Duration::from_millis(later)).await;
        let of_b = b.shards().await;
        b.crash();
        let is_taken = async || {
            let taken = a.shards().await;
            of_b.iter().all(|shard| *shard == 7 || taken.contains(shard))
        };
        within(LEASE + Duration::from_secs(2), "its shards are taken over", is_taken).await;
    }
}

/// Each of them tries it once in a while, and has it for a moment.
#[tokio::test(start_paused = true)]
async fn a_shard_that_several_cannot_open_is_taken_by_the_one_that_can() {
    for apart in (500..10_000).step_by(700) {
        let world = World::new(2);
        let b = world.start("b", |builder| builder).await;
        let mut others = Vec::new();
        for number in 0..3 {
            let store = world.store.another();
            store.faults().unreadable(1);
            others.push(world.start_on(&format!("a{number}"), store, |leases| Arc::new(leases), |builder| builder).await);
            tokio::time::sleep(Duration::from_millis(apart)).await;
        }
        within(LEASE, &format!("it is not left alone, {apart} ms apart"), async || b.shards().await.contains(&1)).await;
    }
}

/// Nobody takes for left alone what is on its way to somebody else.
#[tokio::test(start_paused = true)]
async fn whoever_comes_gets_a_share_though_a_shard_cannot_be_opened() {
    for phase in (0..12_000).step_by(1_700) {
        let world = World::new(16);
        let damaged = || {
            let store = world.store.another();
            store.faults().unreadable(15);
            store
        };
        let _a = world.start_on("a", damaged(), |leases| Arc::new(leases), |builder| builder).await;
        let _b = world.start_on("b", damaged(), |leases| Arc::new(leases), |builder| builder).await;
        tokio::time::sleep(6 * LEASE + Duration::from_millis(phase)).await;
        let c = world
            .start_on("c", damaged(), |leases| Arc::new(Slow(leases, Arc::default())), |builder| builder)
            .await;
        within(12 * LEASE, &format!("it has its share, phase {phase}"), async || c.shards().await.len() >= 3).await; // of 15, and others have 6
        for _ in 0..20 {
            tokio::time::sleep(LEASE / 2).await;
            assert!(c.shards().await.len() >= 3, "and keeps it");
        }
    }
}
