//! Checks that committed data survives closing and reopening the store.

use super::Harness;
use super::fixture::{
    Writer, add, all_callbacks, all_keys, all_letters, all_locks, all_messages, all_plans, all_tasks, all_timers, arm, callback, callbacks,
    disarm, ended, entity, envelope, event, events, key, key_row, keys, letter, letter_id, letters, lock_row, locks, messages, plan_id,
    plan_row, plans, put_callback, put_key, put_lock, recover_ids, row, run, seqs, settle, snapshot, snapshots, task_row, tenant, timer,
};
use steadfast_kernel::{Status, TimerName};
use steadfast_store::{Batch, CallbackChange, Error, Head, KeyChange, LetterChange, LockChange, Store};

/// Journal, rows, timer, message, letter, key, callback, plan, task, lock, snapshot and number are there for the next handle.
pub async fn everything_committed_is_there(harness: &impl Harness) {
    let store = harness.open().await;
    let armed = timer("a", TimerName::Deadline, 5);
    let mut batch =
        Batch { runs: vec![row("a"), task_row("t", "p")], timers: vec![arm(0, &armed)], ..events([event("a", 1), event("a", 2)]) };
    batch.merge(messages([1, 2].map(|seq| add(&envelope("a", seq)))));
    batch.merge(letters([1, 2].map(|seq| LetterChange::Put(letter("bill", seq, 5)))));
    batch.merge(keys(["a", "b"].map(|name| put_key(&key_row(name)))));
    batch.merge(callbacks([1, 2].map(|revision| put_callback(&callback("c", revision, 5)))));
    batch.merge(plans([plan_row("p", 5), plan_row("q", 6)]));
    batch.merge(locks(["acme", "umbrella"].map(|id| put_lock(&lock_row(id)))));
    batch.merge(snapshots([snapshot("a", 2)]));
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(batch).await;
    let mut gone = Batch { outbox: vec![settle(&envelope("a", 1))], ..letters([LetterChange::Remove(letter_id("bill", 1))]) };
    (gone.keys, gone.callbacks) = (vec![KeyChange::Remove(key("b"))], vec![CallbackChange::Remove(key("c"), 1)]);
    gone.plans.push(plan_row("q", 4));
    gone.locks.push(LockChange::Remove(tenant("umbrella")));
    writer.write(gone).await;
    drop(store);
    let store = harness.open().await;
    assert_eq!(seqs(&store, "a").await, [1, 2]);
    assert_eq!(store.run(&run("a")).await.unwrap(), Some(row("a")));
    assert_eq!(recover_ids(&store, 0).await, ["a"]);
    assert_eq!(all_timers(&store, 0).await, [armed]);
    assert_eq!(all_messages(&store, 0).await, [envelope("a", 2)]);
    assert_eq!(all_letters(&store).await, [letter("bill", 2, 5)]);
    assert_eq!(all_keys(&store).await, [key_row("a")]);
    assert_eq!(all_callbacks(&store).await, [callback("c", 2, 5)]);
    assert_eq!(all_plans(&store).await, [plan_row("p", 5), plan_row("q", 4)]);
    assert_eq!(all_tasks(&store, "p").await, [task_row("t", "p")]);
    assert_eq!(store.task_counts(&[plan_id("p")]).await.unwrap().len(), 1);
    assert_eq!(store.latest_task(&tenant("acme")).await.unwrap(), Some(task_row("t", "p")));
    assert_eq!(all_locks(&store).await, [lock_row("acme")]);
    assert_eq!(store.snapshot(&entity("a")).await.unwrap(), Some(snapshot("a", 2)));
    assert_eq!(store.head(0).await.unwrap(), Head { term: 1, seq: 2 });
}

/// A claim after a restart is a new one, and its batches follow on from those before.
pub async fn terms_go_on(harness: &impl Harness) {
    for restart in 0..3 {
        let store = harness.open().await;
        let mut writer = Writer::claim(&store, 0).await;
        assert_eq!(writer.head, Head { term: restart + 1, seq: restart });
        writer.write(events([event("a", restart + 1)])).await;
    }
    let store = harness.open().await;
    assert_eq!(seqs(&store, "a").await, [1, 2, 3]);
}

/// Where a shard stands is on record, so who may write does not change with the handle: the last holder may, and no other.
pub async fn fences_hold(harness: &impl Harness) {
    let store = harness.open().await;
    let stale = store.claim(0).await.unwrap();
    let mut holder = Writer::claim(&store, 0).await;
    holder.write(events([event("a", 1)])).await;
    let head = holder.head;
    drop(store);
    let store = harness.open().await;
    let refused = Writer::claimed(&store, 0, Head { seq: 1, ..stale }).fail(events([event("b", 1)])).await;
    assert!(matches!(refused, Error::Fenced { shard: 0, term: 1 }), "{refused:?}");
    let refused = Writer::claimed(&store, 0, Head { seq: 0, ..head }).fail(events([event("b", 1)])).await;
    assert!(matches!(refused, Error::Gap { shard: 0, after: 0 }), "{refused:?}");
    Writer::claimed(&store, 0, head).write(events([event("a", 2)])).await;
    assert_eq!((seqs(&store, "a").await, seqs(&store, "b").await), (vec![1, 2], vec![]));
}

/// What was replaced, disarmed, settled or removed does not come back.
pub async fn what_is_gone_stays_gone(harness: &impl Harness) {
    let store = harness.open().await;
    let (armed, put) = (timer("a", TimerName::Deadline, 5), letter("bill", 1, 5));
    let mut batch = Batch { runs: vec![row("a")], timers: vec![arm(0, &armed)], ..messages([add(&envelope("a", 1))]) };
    batch.letters.push(LetterChange::Put(put.clone()));
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(batch).await;
    let mut gone = Batch { runs: vec![ended("a", Status::Completed)], ..messages([settle(&envelope("a", 1))]) };
    gone.timers.push(disarm(&armed));
    gone.letters.push(LetterChange::Remove(put.letter));
    writer.write(gone).await;
    drop(store);
    let store = harness.open().await;
    assert_eq!(recover_ids(&store, 0).await, [""; 0]);
    assert_eq!(store.run(&run("a")).await.unwrap(), Some(ended("a", Status::Completed)));
    assert_eq!(all_timers(&store, 0).await, []);
    assert_eq!(all_messages(&store, 0).await, []);
    assert_eq!(all_letters(&store).await, []);
}

/// A batch whose outcome nobody heard is there with all it has, or not at all, and the head tells which.
pub async fn what_was_not_awaited_is_whole_or_absent(harness: &impl Harness) {
    let store = harness.open().await;
    drop(Writer::claim(&store, 0).await.send(events([event("a", 1), event("b", 1)])));
    drop(store);
    let store = harness.open().await;
    let there = store.head(0).await.unwrap().seq == 1;
    assert_eq!(seqs(&store, "a").await.len(), usize::from(there));
    assert_eq!(seqs(&store, "b").await.len(), usize::from(there));
}

/// Commits are counted per opening.
pub async fn the_counter_starts_again(harness: &impl Harness) {
    let store = harness.open().await;
    Writer::claim(&store, 0).await.write(Batch::default()).await;
    drop(store);
    assert_eq!(harness.open().await.commits(), 0);
}
