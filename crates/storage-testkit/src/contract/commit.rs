//! Checks that a commit is atomic and that commits apply in call order.

use super::Harness;
use super::fixture::{
    Writer, add, all_callbacks, all_keys, all_letters, all_locks, all_messages, all_plans, all_tasks, all_timers, arm, callback, changes,
    entity, envelope, event, events, forgotten, key_row, letter, lock_row, plan_id, plan_row, put_callback, put_key, put_lock, recover_ids,
    row, rows, run, seqs, snapshot, task_row, timer,
};
use steadfast_kernel::TimerName;
use steadfast_store::{Batch, LetterChange, RunFilter, Store};

/// Everything that a batch can have, of run `a`. The beginning of journal `old` is forgotten.
fn everything() -> Batch {
    Batch {
        fences: vec![],
        events: vec![event("a", 1), event("a", 2)],
        runs: vec![row("a"), task_row("t", "p")],
        timers: vec![arm(0, &timer("a", TimerName::Deadline, 5))],
        outbox: vec![add(&envelope("a", 1))],
        letters: vec![LetterChange::Put(letter("bill", 1, 5))],
        snapshots: vec![snapshot("a", 2)],
        definitions: vec![],
        keys: vec![put_key(&key_row("a"))],
        callbacks: vec![put_callback(&callback("a", 1, 5))],
        plans: vec![plan_row("p", 5)],
        locks: vec![put_lock(&lock_row("acme"))],
        forgotten: vec![forgotten("old", Some(2))],
    }
}

/// Events, rows, timer, message, letter, key, callback, plan, task, lock and snapshot of a batch are there together, and what it forgets is gone.
pub async fn a_batch_is_applied_as_a_whole(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events([event("old", 1), event("old", 2)])).await;
    writer.write(everything()).await;
    assert_eq!(seqs(&store, "a").await, [1, 2]);
    assert_eq!(store.run(&run("a")).await.unwrap(), Some(row("a")));
    assert_eq!(all_timers(&store, 0).await, [timer("a", TimerName::Deadline, 5)]);
    assert_eq!(all_messages(&store, 0).await, [envelope("a", 1)]);
    assert_eq!(all_letters(&store).await, [letter("bill", 1, 5)]);
    assert_eq!(all_keys(&store).await, [key_row("a")]);
    assert_eq!(all_callbacks(&store).await, [callback("a", 1, 5)]);
    assert_eq!(all_plans(&store).await, [plan_row("p", 5)]);
    assert_eq!(all_tasks(&store, "p").await, [task_row("t", "p")]);
    assert_eq!(all_locks(&store).await, [lock_row("acme")]);
    assert_eq!(seqs(&store, "old").await, [2]);
    assert_eq!(store.snapshot(&entity("a")).await.unwrap(), Some(snapshot("a", 2)));
}

/// One event too many refuses everything that stands beside it.
pub async fn a_refused_batch_leaves_no_trace(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events([event("b", 1), event("old", 1), event("old", 2)])).await;
    let mut batch = everything();
    batch.events.push(event("b", 1));
    writer.fail(batch).await;
    assert_eq!(seqs(&store, "a").await, [0; 0]);
    assert_eq!(store.run(&run("a")).await.unwrap(), None);
    assert_eq!(recover_ids(&store, 0).await, [""; 0]);
    assert_eq!(all_timers(&store, 0).await, []);
    assert_eq!(all_messages(&store, 0).await, []);
    assert_eq!(all_letters(&store).await, []);
    assert_eq!(all_keys(&store).await, []);
    assert_eq!(all_callbacks(&store).await, []);
    assert_eq!(all_plans(&store).await, []);
    assert_eq!(all_tasks(&store, "p").await, []);
    assert_eq!(all_locks(&store).await, []);
    assert_eq!(seqs(&store, "old").await, [1, 2]);
    assert_eq!(store.snapshot(&entity("a")).await.unwrap(), None);
    assert_eq!(store.head(0).await.unwrap(), writer.head);
    writer.write(everything()).await;
}

/// The second batch is awaited first and follows on from the first, which nobody has polled.
pub async fn a_batch_takes_its_place_when_commit_is_called(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let first = writer.send(events([event("a", 1)]));
    let second = writer.send(events([event("a", 2)]));
    second.await.unwrap();
    assert_eq!(seqs(&store, "a").await, [1, 2]);
    first.await.unwrap();
}

/// A pipeline of commits, none of which is awaited before all are in line.
pub async fn many_commits_can_be_under_way(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let outcomes: Vec<_> = (1..=50).map(|seq| writer.send(events([event("a", seq)]))).collect();
    for outcome in outcomes {
        outcome.await.unwrap();
    }
    assert_eq!(seqs(&store, "a").await, (1..=50).collect::<Vec<_>>());
    assert_eq!(store.head(0).await.unwrap(), writer.head);
}

/// A merged batch may put a run several times.
pub async fn the_last_of_several_rows_of_a_batch_stays(harness: &impl Harness) {
    let store = harness.open().await;
    let mut last = row("a");
    last.wait = Some("TIMER".into());
    Writer::claim(&store, 0).await.write(rows([row("a"), row("b"), last.clone()])).await;
    assert_eq!(store.run(&run("a")).await.unwrap(), Some(last));
    assert_eq!(recover_ids(&store, 0).await, ["a", "b"]);
}

/// What was put in line is applied, whoever listens.
pub async fn dropping_the_outcome_does_not_take_the_batch_back(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    drop(writer.send(events([event("a", 1)])));
    writer.write(events([event("a", 2)])).await;
    assert_eq!(seqs(&store, "a").await, [1, 2]);
}

/// Every read that begins after the outcome is known has the commit in it.
pub async fn reads_see_what_was_announced(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    for seq in 1..=20 {
        writer.write(Batch { runs: vec![row(&format!("r{seq}"))], ..events([event("a", seq)]) }).await;
        assert_eq!(store.head(0).await.unwrap(), writer.head);
        assert_eq!(seqs(&store, "a").await.last(), Some(&seq));
        assert!(store.run(&run(&format!("r{seq}"))).await.unwrap().is_some());
    }
}

/// So it is with the lists, which a store may keep elsewhere than what it finds by id.
pub async fn lists_see_what_was_announced(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    for number in 1..=10 {
        let id = format!("r{number:02}");
        let batch = Batch {
            runs: vec![row(&id), task_row(&format!("t{number:02}"), "p")],
            timers: vec![arm(0, &timer(&id, TimerName::Deadline, 5))],
            outbox: vec![add(&envelope("a", number))],
            letters: vec![LetterChange::Put(letter("bill", number, 5))],
            keys: vec![put_key(&key_row(&id))],
            callbacks: vec![put_callback(&callback(&id, 1, 5))],
            plans: vec![plan_row(&id, 5)],
            locks: vec![put_lock(&lock_row(&id))],
            ..Batch::default()
        };
        writer.write(batch).await;
        let number = usize::try_from(number).unwrap();
        assert_eq!(recover_ids(&store, 0).await.len(), number);
        assert_eq!(store.runs(&RunFilter::default(), None, 99).await.unwrap().len(), 2 * number);
        assert_eq!(all_timers(&store, 0).await.len(), number);
        assert_eq!(all_messages(&store, 0).await.len(), number);
        assert_eq!(all_letters(&store).await.len(), number);
        assert_eq!(all_keys(&store).await.len(), number);
        assert_eq!(all_callbacks(&store).await.len(), number);
        assert_eq!(all_plans(&store).await.len(), number);
        assert_eq!(all_tasks(&store, "p").await.len(), number);
        assert_eq!(store.task_counts(&[plan_id("p")]).await.unwrap()[0].tasks, number as u64);
        assert_eq!(all_locks(&store).await.len(), number);
        assert_eq!(store.callbacks_count(&[0]).await.unwrap(), number as u64);
    }
}

/// Claims and refused batches do not count.
pub async fn only_batches_that_were_applied_are_counted(harness: &impl Harness) {
    let store = harness.open().await;
    assert_eq!(store.commits(), 0);
    let mut writer = Writer::claim(&store, 0).await;
    assert_eq!(store.commits(), 0);
    writer.write(events([event("a", 1)])).await;
    writer.write(changes([])).await;
    assert_eq!(store.commits(), 2);
    writer.fail(events([event("a", 1)])).await;
    assert_eq!(store.commits(), 2);
}
