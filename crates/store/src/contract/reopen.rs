//! What was committed outlives the handle.

use super::Harness;
use super::fixture::{Writer, all_timers, arm, event, events, row, run, seqs, timer};
use crate::{Batch, Head, Store};
use steadfast_kernel::TimerName;

/// Journal, row, timer and number are there for the next handle.
pub async fn everything_committed_is_there(harness: &impl Harness) {
    let store = harness.open().await;
    let armed = timer("a", TimerName::Deadline, 5);
    let batch = Batch { runs: vec![row("a")], timers: vec![arm(0, &armed)], ..events([event("a", 1), event("a", 2)]) };
    Writer::claim(&store, 0).await.write(batch).await;
    drop(store);
    let store = harness.open().await;
    assert_eq!(seqs(&store, "a").await, [1, 2]);
    assert_eq!(store.run(&run("a")).await.unwrap(), Some(row("a")));
    assert_eq!(all_timers(&store, 0).await, [armed]);
    assert_eq!(store.head(0).await.unwrap(), Head { term: 1, seq: 1 });
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
