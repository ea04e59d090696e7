//! Locks and their fences.

use crate::help::*;
use std::sync::Arc;
use std::time::Duration;
use steadfast_store::{Commons, LockHolder, SharedLock, Write, Wrote};
use steadfast_store_redis::Redis;
use steadfast_test_servers::{RedisServer, wait_until};

fn renew(holder: LockHolder, lease: Duration) -> Write {
    Write::RenewLock { tenant: tenant(), holder, lease }
}

fn release(holder: LockHolder) -> Write {
    Write::ReleaseLock { tenant: tenant(), holder }
}

fn next(above: u64) -> Write {
    Write::NextFence { tenant: tenant(), above }
}

const KEY: &str = "executor:lock:tenant:acme";

#[tokio::test]
async fn one_holder_has_a_lock_until_it_is_released() {
    let server = RedisServer::start();
    let redis = open(&server);
    assert_eq!(send(&redis, take(holder("a", 1))).await, Wrote::Done);
    assert_eq!(send(&redis, take(holder("a", 1))).await, Wrote::Done, "the second time changes nothing");
    assert_eq!(server.cli(&["GET", KEY]).text(), "switch/1:switch/1/acme:a:1");
    assert_eq!(send(&redis, take(holder("b", 2))).await, Wrote::Held(holder("a", 1)));
    assert_eq!(send(&redis, take(holder("a", 3))).await, Wrote::Done, "the same task of the same instance, again");
    assert_eq!(send(&redis, take(holder("a", 2))).await, Wrote::Held(holder("a", 3)), "an older holding of its own");
    assert_eq!(send(&redis, release(holder("b", 2))).await, Wrote::Held(holder("a", 3)));
    assert_eq!(send(&redis, release(holder("a", 1))).await, Wrote::Held(holder("a", 3)));
    assert_eq!(send(&redis, release(holder("a", 3))).await, Wrote::Done);
    assert_eq!(send(&redis, release(holder("a", 3))).await, Wrote::Missing);
    assert_eq!(send(&redis, take(holder("b", 4))).await, Wrote::Done);
}

#[tokio::test]
async fn another_task_or_plan_of_the_same_instance_is_another_holder() {
    let server = RedisServer::start();
    let redis = open(&server);
    send(&redis, take(holder("a", 1))).await;
    let other_task = LockHolder { task: task_of("other"), ..holder("a", 2) };
    let other_plan = LockHolder { plan: steadfast_kernel::PlanId::new("other").unwrap(), ..holder("a", 2) };
    for other in [other_task, other_plan] {
        assert_eq!(send(&redis, take(other.clone())).await, Wrote::Held(holder("a", 1)));
        assert_eq!(send(&redis, renew(LockHolder { fence: 1, ..other.clone() }, LEASE)).await, Wrote::Held(holder("a", 1)));
        assert_eq!(send(&redis, release(LockHolder { fence: 0, ..other })).await, Wrote::Held(holder("a", 1)));
    }
}

#[tokio::test]
async fn a_holder_that_is_gone_is_replaced_by_name() {
    let server = RedisServer::start();
    let redis = open(&server);
    send(&redis, take(holder("a", 1))).await;
    let instead = |of: LockHolder| Write::TakeLock { tenant: tenant(), holder: holder("b", 2), lease: LEASE, instead_of: Some(of) };
    assert_eq!(send(&redis, instead(holder("a", 2))).await, Wrote::Held(holder("a", 1)), "another holding of it");
    assert_eq!(send(&redis, instead(holder("a", 1))).await, Wrote::Done);
    assert_eq!(send(&redis, instead(holder("a", 1))).await, Wrote::Done, "the second time changes nothing");
    assert_eq!(redis.locks(&[tenant()]).await.unwrap()[0].holder, holder("b", 2));
}

#[tokio::test]
async fn a_fence_of_0_releases_any_holding_of_that_task() {
    let server = RedisServer::start();
    let redis = open(&server);
    send(&redis, take(holder("a", 7))).await;
    assert_eq!(send(&redis, release(holder("b", 0))).await, Wrote::Held(holder("a", 7)));
    assert_eq!(send(&redis, release(holder("a", 0))).await, Wrote::Done);
    assert!(server.keys().is_empty());
}

#[tokio::test]
async fn a_lock_is_renewed_by_its_holder_only() {
    let server = RedisServer::start();
    let redis = open(&server);
    assert_eq!(send(&redis, renew(holder("a", 1), LEASE)).await, Wrote::Missing);
    send(&redis, take(holder("a", 1))).await;
    assert!((8_900_000..=9_000_000).contains(&server.cli(&["PTTL", KEY]).number()));
    assert_eq!(send(&redis, renew(holder("a", 1), Duration::from_secs(20_000))).await, Wrote::Done);
    assert!((19_900_000..=20_000_000).contains(&server.cli(&["PTTL", KEY]).number()));
    assert_eq!(send(&redis, renew(holder("a", 2), LEASE)).await, Wrote::Held(holder("a", 1)));
    assert_eq!(send(&redis, renew(holder("b", 1), LEASE)).await, Wrote::Held(holder("a", 1)));
    assert!(server.cli(&["PTTL", KEY]).number() > 19_000_000, "who is not the holder changes nothing");
}

#[tokio::test]
async fn a_lock_that_is_not_renewed_is_free_after_its_lease() {
    let server = RedisServer::start();
    let redis = open(&server);
    let short = Write::TakeLock { tenant: tenant(), holder: holder("a", 1), lease: Duration::from_millis(20), instead_of: None };
    assert_eq!(send(&redis, short).await, Wrote::Done);
    wait_until("the lease has ended", Duration::from_secs(10), || server.keys().is_empty());
    assert_eq!(send(&redis, renew(holder("a", 1), LEASE)).await, Wrote::Missing, "a lock that was lost is not renewed");
    assert_eq!(send(&redis, take(holder("b", 2))).await, Wrote::Done);
}

#[tokio::test]
async fn locks_come_with_the_time_that_is_left() {
    let server = RedisServer::start();
    let redis = open(&server);
    let tenants = ["acme", "free", "for-ever"].map(|name| steadfast_kernel::TenantId::new(name).unwrap());
    send(&redis, take(holder("a", 1))).await;
    server.cli(&["SET", "executor:lock:tenant:for-ever", &holder("b", 2).to_string()]);
    let locks = redis.locks(&tenants).await.unwrap();
    assert_eq!(locks.len(), 2);
    assert_eq!((&locks[0].tenant, &locks[0].holder), (&tenants[0], &holder("a", 1)));
    assert!(locks[0].left <= LEASE && locks[0].left > LEASE - Duration::from_secs(60));
    assert_eq!(locks[1], SharedLock { tenant: tenants[2].clone(), holder: holder("b", 2), left: Duration::MAX });
    assert_eq!(redis.locks(&[]).await.unwrap(), []);
}

#[tokio::test]
async fn a_lease_of_any_length_is_taken() {
    let server = RedisServer::start();
    let redis = open(&server);
    let lock = |lease, fence| Write::TakeLock { tenant: tenant(), holder: holder("a", fence), lease, instead_of: None };
    assert_eq!(send(&redis, lock(Duration::MAX, 1)).await, Wrote::Done);
    assert_eq!(send(&redis, lock(Duration::ZERO, 2)).await, Wrote::Done);
}

#[tokio::test]
async fn fences_only_rise_and_outlive_the_lock() {
    let server = RedisServer::start();
    let redis = open(&server);
    assert_eq!(redis.fence(&tenant()).await.unwrap(), 0);
    assert_eq!(send(&redis, next(0)).await, Wrote::Fence(1));
    assert_eq!(send(&redis, next(0)).await, Wrote::Fence(2));
    assert_eq!(send(&redis, next(10)).await, Wrote::Fence(11));
    assert_eq!(send(&redis, next(3)).await, Wrote::Fence(12));
    let raise = |to| Write::RaiseFence { tenant: tenant(), to };
    assert_eq!(send(&redis, raise(5)).await, Wrote::Done);
    assert_eq!(redis.fence(&tenant()).await.unwrap(), 12);
    assert_eq!(send(&redis, raise(20)).await, Wrote::Done);
    assert_eq!(send(&redis, next(0)).await, Wrote::Fence(21));
    let big = 9_007_199_254_740_993;
    assert_eq!(send(&redis, next(big)).await, Wrote::Fence(big + 1));
    assert_eq!(server.cli(&["TTL", "executor:fence:tenant:acme"]).number(), -1);
    let foreign = Wrote::Foreign { key: "executor:fence:tenant:acme".into() };
    assert_eq!(send(&redis, next(u64::MAX)).await, foreign, "the counter cannot go so far");
    assert_eq!(redis.fence(&tenant()).await.unwrap(), big + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_race_for_a_lock_one_gets_it_and_fences_rise() {
    let server = RedisServer::start();
    let racers = [("a", Arc::new(open(&server))), ("b", Arc::new(open(&server)))];
    let mut last = 0;
    for _ in 0..1000 {
        let [one, other] = racers.clone().map(|(name, redis)| tokio::spawn(race(name, redis)));
        let (one, other) = (one.await.unwrap(), other.await.unwrap());
        assert_ne!(one.0.fence, other.0.fence);
        assert!(one.0.fence > last && other.0.fence > last);
        last = one.0.fence.max(other.0.fence);
        let (winner, loser) = if one.1 == Wrote::Done { (one, other) } else { (other, one) };
        assert_eq!((winner.1, loser.1), (Wrote::Done, Wrote::Held(winner.0.clone())));
        assert_eq!(send(&racers[0].1, release(winner.0)).await, Wrote::Done);
    }
}

/// Gets a fence and takes the lock with it.
async fn race(name: &'static str, redis: Arc<Redis>) -> (LockHolder, Wrote) {
    let Wrote::Fence(fence) = send(&redis, next(0)).await else { panic!("there is no fence") };
    (holder(name, fence), send(&redis, take(holder(name, fence))).await)
}
