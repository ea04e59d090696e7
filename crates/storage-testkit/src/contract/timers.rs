//! Checks timers: armed, replaced, disarmed, and listed in the order of their keys.

use super::Harness;
use super::fixture::{Writer, all_timers, arm, changes, disarm, key, step, tenant, time, timer};
use steadfast_kernel::{EntityId, Timer, TimerName, Timestamp};
use steadfast_store::{Store, TimerKey};

/// The timer of a key.
fn of_key(name: &str, timer_name: TimerName, due: i64) -> Timer {
    Timer { entity: EntityId::Key(key(name)), ..timer("a", timer_name, due) }
}

/// The timer of a lock.
fn of_lock(id: &str, due: i64) -> Timer {
    Timer { entity: EntityId::Lock(tenant(id)), ..timer("a", TimerName::Lease, due) }
}

/// Timers that differ in one part of the key each, in the order that is due: (due, run, key or lock as text, name), and names by kind before text.
fn in_order() -> Vec<Timer> {
    let retry = |name| TimerName::Retry(step(name));
    let sleep = |name| TimerName::Sleep(step(name));
    vec![
        timer("z", TimerName::Deadline, 0),
        timer("B", sleep("a"), 5),
        timer("a", retry("Z"), 5),
        timer("a", retry("a"), 5),
        timer("a", retry("z"), 5),
        timer("a", sleep("a"), 5),
        timer("a", sleep("b"), 5),
        timer("a", TimerName::Deadline, 5),
        timer("a-1", retry("a"), 5),
        timer("a/1", retry("a"), 5),
        timer("b", TimerName::Deadline, 5),
        timer("key", TimerName::Deadline, 5),
        timer("key-1", TimerName::Deadline, 5),
        timer("key/a", TimerName::Deadline, 5),
        of_key("B", TimerName::Expiry, 5),
        of_key("a", TimerName::Expiry, 5),
        of_key("a", TimerName::Callback(9), 5),
        of_key("a", TimerName::Callback(10), 5),
        of_key("a", TimerName::Callback(u64::MAX), 5),
        of_key("a", TimerName::Forget, 5),
        of_key("a-1", TimerName::Expiry, 5),
        of_key("a/1", TimerName::Expiry, 5),
        of_key("a:1", TimerName::Callback(1), 5),
        timer("keya", TimerName::Deadline, 5),
        timer("l", TimerName::Deadline, 5),
        timer("lock", TimerName::Deadline, 5),
        of_lock("B", 5),
        of_lock("a", 5),
        timer("locka", TimerName::Deadline, 5),
        timer("A", retry("a"), 6),
        timer("c", sleep("a"), 1_000_000),
        Timer { due: Timestamp::MAX, ..timer("a", sleep("never"), 0) },
    ]
}

/// Arms the timers in an order that is not theirs.
async fn arm_shuffled(store: &impl Store, timers: &[Timer]) {
    let (odd, even): (Vec<_>, Vec<_>) = timers.iter().rev().enumerate().partition(|(place, _)| place % 2 == 1);
    let mut writer = Writer::claim(store, 0).await;
    writer.write(changes(odd.into_iter().map(|(_, timer)| arm(0, timer)))).await;
    writer.write(changes(even.into_iter().map(|(_, timer)| arm(0, timer)))).await;
}

/// The order of the list is the order of [`TimerKey`].
pub async fn timers_come_in_the_order_of_their_keys(harness: &impl Harness) {
    let store = harness.open().await;
    arm_shuffled(&store, &in_order()).await;
    let found = all_timers(&store, 0).await;
    assert_eq!(found, in_order());
    assert!(found.is_sorted_by_key(TimerKey::from));
}

/// Whatever the size of a page, the pages together are the list.
pub async fn pages_follow_the_same_order(harness: &impl Harness) {
    let store = harness.open().await;
    arm_shuffled(&store, &in_order()).await;
    for limit in 1..=in_order().len() {
        let mut found: Vec<Timer> = vec![];
        loop {
            let page = store.timers(0, found.last().map(TimerKey::from).as_ref(), limit).await.unwrap();
            assert!(page.len() <= limit);
            found.extend(page.iter().cloned());
            assert!(found.len() <= in_order().len(), "pages repeat");
            if page.is_empty() {
                break;
            }
        }
        assert_eq!(found, in_order(), "pages of {limit}");
    }
    assert_eq!(store.timers(0, None, 0).await.unwrap(), []);
}

/// The key that a page begins after need not be there any more.
pub async fn a_page_begins_after_a_key_that_is_gone(harness: &impl Harness) {
    let store = harness.open().await;
    let (gone, next) = (timer("a", TimerName::Sleep(step("a")), 5), timer("a", TimerName::Deadline, 5));
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(changes([arm(0, &gone), arm(0, &next)])).await;
    writer.write(changes([disarm(&gone)])).await;
    assert_eq!(store.timers(0, Some(&TimerKey::from(&gone)), 9).await.unwrap(), [next]);
}

/// A run has one timer of a name; the last one armed is it.
pub async fn arming_again_replaces(harness: &impl Harness) {
    let store = harness.open().await;
    let first = timer("a", TimerName::Retry(step("charge")), 5);
    let second = Timer { due: time(3), revision: 8, ..first.clone() };
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(changes([arm(0, &first)])).await;
    writer.write(changes([arm(0, &second)])).await;
    assert_eq!(all_timers(&store, 0).await, [second]);
}

/// A timer that is armed for another shard has left the one it was in.
pub async fn arming_again_moves_between_shards(harness: &impl Harness) {
    let store = harness.open().await;
    let armed = timer("a", TimerName::Deadline, 5);
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(changes([arm(0, &armed)])).await;
    writer.write(changes([arm(1, &armed)])).await;
    assert_eq!(all_timers(&store, 0).await, []);
    assert_eq!(all_timers(&store, 1).await, [armed]);
}

/// Whoever reads page by page meets every timer that is there all the time, once, and none that comes behind it.
pub async fn pages_hold_while_timers_come_and_go(harness: &impl Harness) {
    let store = harness.open().await;
    let due = |id: &str, due| timer(id, TimerName::Deadline, due);
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(changes((1..=6).map(|n| arm(0, &due(&format!("r{n}"), 10 * n))))).await;
    let first = store.timers(0, None, 2).await.unwrap();
    assert_eq!(first, [due("r1", 10), due("r2", 20)]);
    writer
        .write(changes([disarm(&due("r2", 20)), arm(0, &due("behind", 15)), disarm(&due("r4", 40)), arm(0, &due("ahead", 55))]))
        .await;
    let rest = store.timers(0, first.last().map(TimerKey::from).as_ref(), 9).await.unwrap();
    assert_eq!(rest, [due("r3", 30), due("r5", 50), due("ahead", 55), due("r6", 60)]);
}

/// The timers of a key are its own, also if a run has its name.
pub async fn timers_of_keys_are_apart_from_those_of_runs(harness: &impl Harness) {
    let store = harness.open().await;
    let armed = [timer("a", TimerName::Deadline, 5), of_key("a", TimerName::Expiry, 5), of_key("a", TimerName::Callback(3), 5)];
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(changes(armed.iter().map(|timer| arm(0, timer)))).await;
    let again = Timer { due: time(4), revision: 9, ..armed[1].clone() };
    writer
        .write(changes([
            arm(0, &again),
            disarm(&timer("a", TimerName::Expiry, 5)),
            disarm(&of_key("a", TimerName::Deadline, 5)),
            disarm(&of_key("a", TimerName::Callback(4), 5)),
        ]))
        .await;
    let [of_run, _, callback] = armed;
    assert_eq!(all_timers(&store, 0).await, [again.clone(), of_run.clone(), callback.clone()]);
    writer.write(changes([disarm(&callback)])).await;
    assert_eq!(all_timers(&store, 0).await, [again, of_run]);
}

/// Whoever disarms need not know whether it is armed.
pub async fn disarming_what_is_not_there_is_fine(harness: &impl Harness) {
    let store = harness.open().await;
    let (armed, other) = (timer("a", TimerName::Deadline, 5), timer("a", TimerName::Sleep(step("a")), 5));
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(changes([arm(0, &armed)])).await;
    writer.write(changes([disarm(&other), disarm(&timer("b", TimerName::Deadline, 5))])).await;
    assert_eq!(all_timers(&store, 0).await, [armed]);
}

/// Armed then disarmed is gone, disarmed then armed is there.
pub async fn changes_of_one_batch_apply_in_order(harness: &impl Harness) {
    let store = harness.open().await;
    let (first, second) = (timer("a", TimerName::Deadline, 5), timer("b", TimerName::Deadline, 5));
    let later = Timer { due: time(7), ..second.clone() };
    let batch = changes([arm(0, &first), disarm(&first), arm(0, &second), disarm(&second), arm(0, &later)]);
    Writer::claim(&store, 0).await.write(batch).await;
    assert_eq!(all_timers(&store, 0).await, [later]);
}

/// A shard lists its own timers only.
pub async fn timers_of_shards_are_apart(harness: &impl Harness) {
    let store = harness.open().await;
    let (first, second) = (timer("a", TimerName::Deadline, 5), timer("b", TimerName::Deadline, 5));
    Writer::claim(&store, 0).await.write(changes([arm(0, &first), arm(1, &second)])).await;
    assert_eq!(all_timers(&store, 0).await, [first]);
    assert_eq!(all_timers(&store, 1).await, [second]);
    assert_eq!(all_timers(&store, 2).await, []);
}
