//! Leases: one holder, who knows whether it is.

use super::pass;
use crate::support::{engine, until};
use futures_util::future::BoxFuture;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{Clock, Engine, Error, HOUR, Lease, Lost, MINUTE, SECOND, Timestamp, VirtualClock};

const TTL: Duration = Duration::from_secs(9);

async fn start(store: &Memory) -> Engine {
    engine(store).start().await.unwrap()
}

async fn acquire(engine: &Engine, owner: &str) -> Result<Lease, Error> {
    engine.lease("leader").ttl(TTL).owner(owner).acquire().await
}

/// Lets every commit fail for as long as it is set.
fn outage(store: &Memory) -> Arc<AtomicBool> {
    let down = Arc::new(AtomicBool::new(false));
    let is_down = Arc::clone(&down);
    store.faults().rule(move |_| is_down.load(Ordering::SeqCst).then_some(Fault::Fail));
    down
}

/// What a waiter hears, if anything by now.
fn heard(lease: &Lease) -> Option<Lost> {
    futures_util::FutureExt::now_or_never(lease.lost())
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_at_a_third_of_its_time_for_as_long_as_it_is_kept() {
    let engine = start(&Memory::new()).await;
    let lease = acquire(&engine, "a").await.unwrap();
    let commits = engine.commits();
    for _ in 0..60 {
        pass(MINUTE / 2).await;
        assert!(lease.is_held());
    }
    let renewals = engine.commits() - commits;
    assert!((599..=601).contains(&renewals), "half an hour has 600 times three seconds: {renewals}");
    assert_eq!(heard(&lease), None);
    let key = engine.get("leader").await.unwrap().unwrap();
    assert_eq!((key.owner.as_deref(), lease.owner(), lease.name()), (Some("a"), "a", "leader"));
    assert!(key.revision > lease.fence());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_held_is_refused_to_everybody_and_its_holder_is_named() {
    let engine = start(&Memory::new()).await;
    let lease = acquire(&engine, "a").await.unwrap();
    for owner in ["b", "a"] {
        let refused = acquire(&engine, owner).await.unwrap_err();
        assert_eq!(refused.code(), "SF0118");
        assert_eq!(refused.to_string(), "lease leader is held by a; wait until it is free, or ask again later");
    }
    assert!(lease.is_held());
}

#[tokio::test(start_paused = true)]
async fn owners_are_made_up_and_differ() {
    let engine = start(&Memory::new()).await;
    let (one, two) = (engine.lease("x").acquire().await.unwrap(), engine.lease("y").acquire().await.unwrap());
    assert_ne!(one.owner(), two.owner());
    assert!(engine.lease("x").acquire().await.is_err());
    assert_eq!(engine.lease("z").ttl(Duration::ZERO).acquire().await.unwrap_err().code(), "SF0120");
    assert_eq!(engine.lease("no key").acquire().await.unwrap_err().code(), "SF0101");
}

#[tokio::test(start_paused = true)]
async fn the_loss_of_a_lease_is_told_to_each_who_waits_once_and_stays_known() {
    let engine = start(&Memory::new()).await;
    let lease = acquire(&engine, "a").await.unwrap();
    let clone = lease.clone();
    let waiting = [tokio::spawn(lease.lost()), tokio::spawn(lease.lost()), tokio::spawn(clone.lost())];
    pass(SECOND).await;
    assert!(waiting.iter().all(|waiter| !waiter.is_finished()));
    engine.delete("leader").owner("a").await.unwrap();
    pass(TTL / 3).await;
    for waiter in waiting {
        assert!(waiter.is_finished());
        assert_eq!(waiter.await.unwrap(), Lost::Taken);
    }
    assert!(!lease.is_held() && !clone.is_held());
    lease.release().await.unwrap();
    assert_eq!((lease.lost().await, clone.lost().await), (Lost::Taken, Lost::Taken), "it is lost once");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_renewed_is_held_only_while_nobody_else_can_have_it() {
    let store = Memory::new();
    let engine = start(&store).await;
    let down = outage(&store);
    let lease = acquire(&engine, "a").await.unwrap();
    pass(MINUTE).await;
    down.store(true, Ordering::SeqCst);
    let expires_at = engine.get("leader").await.unwrap().unwrap().expires_at;
    assert!(lease.held_until() <= expires_at);
    let mut was_held = 0;
    while lease.is_held() {
        assert!(engine.get("leader").await.unwrap().is_some(), "held, though its key has expired");
        was_held += 1;
        tokio::time::sleep(SECOND / 100).await;
    }
    assert!(was_held > 500, "it is held for as long as that is certain, though the store is away: {was_held}");
    assert_eq!(lease.lost().await, Lost::Expired);
    down.store(false, Ordering::SeqCst);
    pass(MINUTE).await;
    assert_eq!((lease.is_held(), heard(&lease)), (false, Some(Lost::Expired)), "what is lost is not found again");
    assert!(acquire(&engine, "b").await.unwrap().fence() > lease.fence());
}

/// A slow disk: the renewal is asked for at a third of the time, and answered at two thirds.
#[tokio::test(start_paused = true)]
async fn a_renewal_counts_from_when_it_was_asked_for() {
    let store = Memory::new();
    let engine = start(&store).await;
    let lease = acquire(&engine, "a").await.unwrap();
    let first = lease.held_until();
    let gate = Gate::default();
    store.faults().after(0, Fault::Hold(gate.clone()));
    store.faults().after(0, Fault::Hold(Gate::default())); // the next one, which is due at once then
    pass(2 * TTL / 3).await;
    assert_eq!(lease.held_until(), first, "what is not answered does not count");
    gate.open();
    pass(Duration::ZERO).await;
    assert!(lease.held_until() > first && lease.is_held());
    assert!(lease.held_until() <= first.saturating_add(TTL / 3 + SECOND / 100));
}

/// A machine that can sleep: then its time goes on, and nothing else does.
#[derive(Clone)]
struct Sleepy {
    clock: VirtualClock,
    slept: Arc<Mutex<Duration>>,
}

impl Clock for Sleepy {
    fn now(&self) -> Timestamp {
        self.clock.now().saturating_add(*self.slept.lock().unwrap())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(duration)
    }

    fn steady_for(&self) -> Duration {
        SECOND
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_slept_for_too_long_holds_nothing_when_it_wakes() {
    let clock = Sleepy { clock: VirtualClock::start(), slept: Arc::default() };
    let engine = Engine::in_memory().clock(clock.clone()).start().await.unwrap();
    let lease = acquire(&engine, "a").await.unwrap();
    pass(SECOND).await;
    *clock.slept.lock().unwrap() = TTL - SECOND - SECOND / 2;
    assert!(lease.is_held(), "not yet");
    *clock.slept.lock().unwrap() = TTL;
    assert!(!lease.is_held(), "at once, before anything else had a turn");
    pass(SECOND).await;
    assert_eq!(heard(&lease), Some(Lost::Expired));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_back_in_time_costs_no_lease() {
    let store = Memory::new();
    let engine = start(&store).await;
    let down = outage(&store);
    let lease = acquire(&engine, "a").await.unwrap();
    for _ in 0..10 {
        down.store(true, Ordering::SeqCst);
        pass(TTL / 2).await;
        down.store(false, Ordering::SeqCst);
        pass(TTL / 2).await;
        assert!(lease.is_held());
    }
    assert_eq!(heard(&lease), None);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_there_though_its_answer_got_lost_is_found() {
    let store = Memory::new();
    let engine = start(&store).await;
    let lease = acquire(&engine, "a").await.unwrap();
    for _ in 0..5 {
        store.faults().after(0, Fault::Doubt);
        pass(TTL).await;
        assert!(lease.is_held());
    }
    lease.release().await.unwrap();
    assert_eq!(engine.get("leader").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_taken_though_the_answer_got_lost_is_found_by_who_waits_for_it() {
    let store = Memory::new();
    let engine = start(&store).await;
    store.faults().after(0, Fault::Doubt);
    let lease = engine.lease("leader").ttl(TTL).owner("a").acquire_within(SECOND).await.unwrap();
    assert!(lease.is_held());
    assert!(lease.held_until() <= engine.get("leader").await.unwrap().unwrap().expires_at);
    pass(MINUTE).await;
    assert!(lease.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_can_be_had_at_once_with_a_higher_fence() {
    let engine = start(&Memory::new()).await;
    let first = acquire(&engine, "a").await.unwrap();
    pass(MINUTE).await;
    first.release().await.unwrap();
    assert!(!first.is_held());
    assert_eq!(first.lost().await, Lost::Released);
    let second = acquire(&engine, "b").await.unwrap();
    assert!(second.fence() > first.fence());
    first.release().await.unwrap();
    drop(first);
    pass(MINUTE).await;
    assert!(second.is_held());
}

/// The owner has the same name, so that only the claim tells them apart.
#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_else_has_taken_is_neither_renewed_nor_deleted() {
    let engine = start(&Memory::new()).await;
    for also_drop in [false, true] {
        let first = acquire(&engine, "node").await.unwrap();
        engine.delete("leader").owner("node").await.unwrap();
        let second = acquire(&engine, "node").await.unwrap();
        let revision = engine.get("leader").await.unwrap().unwrap().revision;
        if also_drop {
            drop(first);
            tokio::time::sleep(SECOND).await;
        } else {
            first.release().await.unwrap();
        }
        assert_eq!(engine.get("leader").await.unwrap().unwrap().revision, revision);
        second.release().await.unwrap();
    }
    let first = acquire(&engine, "node").await.unwrap();
    engine.delete("leader").owner("node").await.unwrap();
    let second = acquire(&engine, "node").await.unwrap();
    pass(TTL / 3).await;
    assert_eq!(heard(&first), Some(Lost::Taken));
    assert_eq!(heard(&second), None);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_lease_is_released_also_while_it_is_being_renewed() {
    let store = Memory::new();
    let engine = start(&store).await;
    let lease = acquire(&engine, "a").await.unwrap();
    let waiting = tokio::spawn(lease.lost());
    drop(lease.clone());
    pass(MINUTE).await;
    assert!(lease.is_held(), "a clone is not the last one");
    drop(lease);
    assert_eq!(waiting.await.unwrap(), Lost::Released);
    until("the key is gone", async || engine.get("leader").await.unwrap().is_none()).await;

    let lease = acquire(&engine, "a").await.unwrap();
    let gate = Gate::default();
    store.faults().after(0, Fault::Hold(gate.clone()));
    pass(TTL / 3).await;
    drop(lease);
    gate.open();
    until("the key is gone", async || engine.get("leader").await.unwrap().is_none()).await;
    let commits = engine.commits();
    pass(MINUTE).await;
    assert_eq!(engine.commits(), commits, "nobody renews it");
}

#[tokio::test(start_paused = true)]
async fn who_waits_has_the_lease_as_soon_as_it_is_free() {
    let engine = start(&Memory::new()).await;
    let first = acquire(&engine, "a").await.unwrap();
    let wait = |patience| {
        let wanted = engine.lease("leader").ttl(TTL).owner("b");
        tokio::spawn(wanted.acquire_within(patience))
    };
    let refused = wait(MINUTE).await.unwrap().unwrap_err();
    assert!(matches!(refused, Error::LeaseHeld { owner: Some(owner), .. } if owner == "a"));
    let waiting = wait(HOUR);
    pass(MINUTE).await;
    assert!(!waiting.is_finished());
    let released_at = tokio::time::Instant::now();
    first.release().await.unwrap();
    let second = waiting.await.unwrap().unwrap();
    assert!(released_at.elapsed() < SECOND / 10);
    assert!(second.is_held());
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_process_that_died_is_free_when_its_time_is_over() {
    let (store, clock) = (Memory::new(), VirtualClock::start());
    let engine = Engine::on(store.clone()).clock(clock).start().await.unwrap();
    let lease = acquire(&engine, "a").await.unwrap();
    pass(MINUTE).await;
    let fence = lease.fence();
    let next = Engine::on(store.reopen()).clock(clock).start().await.unwrap();
    assert!(acquire(&next, "b").await.is_err());
    let second = next.lease("leader").ttl(TTL).owner("b").acquire_within(2 * TTL).await.unwrap();
    assert!(second.fence() > fence);
    assert!(!lease.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_with_its_engine() {
    let engine = start(&Memory::new()).await;
    let lease = acquire(&engine, "a").await.unwrap();
    engine.shutdown().await;
    assert_eq!(lease.lost().await, Lost::Stopped);
    assert!(!lease.is_held());
}
