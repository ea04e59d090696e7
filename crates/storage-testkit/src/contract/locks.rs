//! Checks rows of held locks: put, removed, and found by tenant.

use super::Harness;
use super::fixture::{Writer, all_locks, event, events, lock_row, locks, plan_id, put_lock, run, tenant, time};
use std::slice;
use std::time::Duration;
use steadfast_kernel::{Lease, Timestamp};
use steadfast_store::LockChange::Remove;
use steadfast_store::{LockRow, Store};

/// A lock with everything.
fn full() -> LockRow {
    let lease = Lease {
        plan: plan_id("team/switch.17_a-b"),
        task: run("team/switch.17_a-b/acme/eu"),
        epoch: u32::MAX,
        fence: 1 << 40,
        lease: Duration::from_micros(1_500_001),
        expires_at: Timestamp::MAX,
    };
    LockRow { shard: 5, lease, since: Timestamp::EPOCH, waiting: u32::MAX, ..lock_row("acme/eu.1_a-b") }
}

/// The tenants of those locks.
fn tenants_of(rows: Vec<LockRow>) -> Vec<String> {
    rows.into_iter().map(|row| row.tenant.to_string()).collect()
}

async fn found(store: &impl Store, ids: &[&str]) -> Vec<String> {
    let tenants: Vec<_> = ids.iter().map(|id| tenant(id)).collect();
    tenants_of(store.locks_of(&tenants).await.unwrap())
}

async fn after(store: &impl Store, id: Option<&str>, limit: usize) -> Vec<String> {
    tenants_of(store.locks(id.map(tenant).as_ref(), limit).await.unwrap())
}

/// All fields of a lock.
pub async fn a_lock_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    let short = LockRow { lease: Lease { lease: Duration::ZERO, fence: 0, ..lock_row("z").lease }, ..lock_row("z") };
    Writer::claim(&store, 0).await.write(locks([put_lock(&short), put_lock(&full())])).await;
    assert_eq!(store.locks_of(&[full().tenant]).await.unwrap(), [full()]);
    assert_eq!(all_locks(&store).await, [full(), short]);
}

/// A lock put again is the new one, in every field.
pub async fn a_lock_is_replaced(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let first = lock_row(full().tenant.as_str());
    for row in [first.clone(), full(), LockRow { since: time(9), waiting: 2, ..first.clone() }, first] {
        writer.write(locks([put_lock(&row)])).await;
        assert_eq!(store.locks_of(slice::from_ref(&row.tenant)).await.unwrap(), slice::from_ref(&row));
        assert_eq!(all_locks(&store).await, [row]);
    }
}

/// Tenants in the order that is due, which is that of their bytes.
const IN_ORDER: [&str; 10] = ["-", "10", "9", "B", "_", "a", "a-1", "a.b", "a/b", "b"];

/// Puts locks of those tenants in an order that is not theirs.
async fn put_shuffled(store: &impl Store) {
    let (odd, even): (Vec<_>, Vec<_>) = IN_ORDER.iter().rev().enumerate().partition(|(place, _)| place % 2 == 1);
    let mut writer = Writer::claim(store, 0).await;
    let elsewhere = |(_, id): (usize, &&str)| put_lock(&LockRow { shard: 1, ..lock_row(id) });
    writer.write(locks(odd.into_iter().map(|(_, id)| put_lock(&lock_row(id))))).await;
    writer.write(locks(even.into_iter().map(elsewhere))).await;
}

/// Those that there are of those that are named, once each and in the order of the tenants.
pub async fn several_locks_are_found_at_once(harness: &impl Harness) {
    let store = harness.open().await;
    put_shuffled(&store).await;
    assert_eq!(found(&store, &["b", "a/b", "missing", "a", "b", "a/b/c"]).await, ["a", "a/b", "b"]);
    assert_eq!(found(&store, &["A", "a/c", "aa"]).await, [""; 0]);
    assert_eq!(found(&store, &[]).await, [""; 0]);
    let many: Vec<_> = (0..3_000).map(|number| tenant(&format!("n{number}"))).chain([tenant("a")]).collect();
    assert_eq!(tenants_of(store.locks_of(&many).await.unwrap()), ["a"]);
}

/// Whatever the size of a page and whatever it begins after, the pages together are the list, over all shards.
pub async fn pages_of_locks_meet(harness: &impl Harness) {
    let store = harness.open().await;
    put_shuffled(&store).await;
    assert!(IN_ORDER.is_sorted());
    for limit in 0..=IN_ORDER.len() {
        assert_eq!(after(&store, None, limit).await, IN_ORDER[..limit]);
        for place in 0..IN_ORDER.len() {
            let rest: Vec<_> = IN_ORDER[place + 1..].iter().take(limit).copied().collect();
            assert_eq!(after(&store, Some(IN_ORDER[place]), limit).await, rest, "{limit} after {place}");
        }
    }
    assert_eq!(after(&store, Some("a/a"), 9).await, ["a/b", "b"]);
    assert_eq!(after(&store, Some("bb"), 9).await, [""; 0]);
}

/// Removed is gone, and whoever removes need not know whether it is there. Others are as they were.
pub async fn a_lock_that_is_removed_is_gone(harness: &impl Harness) {
    let store = harness.open().await;
    put_shuffled(&store).await;
    Writer::claim(&store, 0)
        .await
        .write(locks([Remove(tenant("a")), Remove(tenant("b")), Remove(tenant("c"))]))
        .await;
    assert_eq!(found(&store, &["a", "a/b", "b"]).await, ["a/b"]);
    assert_eq!(all_locks(&store).await.len(), IN_ORDER.len() - 2);
}

/// Put then removed is gone, removed then put is there, put twice is the last one.
pub async fn locks_of_one_batch_change_in_order(harness: &impl Harness) {
    let store = harness.open().await;
    let (first, second) = (lock_row("a"), lock_row("b"));
    let last = LockRow { waiting: 8, ..second.clone() };
    let changes = [put_lock(&first), Remove(first.tenant.clone()), Remove(second.tenant.clone()), put_lock(&second), put_lock(&last)];
    Writer::claim(&store, 0).await.write(locks(changes)).await;
    assert_eq!(all_locks(&store).await, [last]);
}

/// A batch that fails neither puts nor removes.
pub async fn locks_stand_and_fall_with_their_events(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events([event("a", 1)])).await;
    writer.write(locks([put_lock(&lock_row("a"))])).await;
    let mut failing = locks([Remove(tenant("a")), put_lock(&lock_row("b"))]);
    failing.merge(events([event("a", 1)]));
    writer.fail(failing).await;
    assert_eq!(all_locks(&store).await, [lock_row("a")]);
}
