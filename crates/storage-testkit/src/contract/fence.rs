//! Checks fencing: only the last claim writes a shard, and its batches leave no gap.

use super::Harness;
use super::fixture::{Writer, event, events, seqs};
use steadfast_store::{Batch, Error, Fence, Head, Store};

/// The first claim has term 1; a claim after a commit keeps the commit's number.
pub async fn a_claim_raises_the_term_and_keeps_the_number(harness: &impl Harness) {
    let store = harness.open().await;
    assert_eq!(store.head(0).await.unwrap(), Head { term: 0, seq: 0 });
    let mut writer = Writer::claim(&store, 0).await;
    assert_eq!(writer.head, Head { term: 1, seq: 0 });
    writer.write(Batch::default()).await;
    assert_eq!(store.claim(0).await.unwrap(), Head { term: 2, seq: 1 });
    assert_eq!(store.head(0).await.unwrap(), Head { term: 2, seq: 1 });
}

/// A claim of one shard says nothing about another.
pub async fn shards_are_claimed_apart(harness: &impl Harness) {
    let store = harness.open().await;
    let mut first = Writer::claim(&store, 0).await;
    let mut second = Writer::claim(&store, 63).await;
    first.write(Batch::default()).await;
    first.write(Batch::default()).await;
    second.write(Batch::default()).await;
    assert_eq!(store.head(0).await.unwrap(), Head { term: 1, seq: 2 });
    assert_eq!(store.head(63).await.unwrap(), Head { term: 1, seq: 1 });
}

/// The holder before the last claim may no longer write.
pub async fn a_stale_term_is_refused(harness: &impl Harness) {
    let store = harness.open().await;
    let mut old = Writer::claim(&store, 0).await;
    let mut new = Writer::claim(&store, 0).await;
    let error = old.fail(events([event("a", 1)])).await;
    assert!(matches!(error, Error::Fenced { shard: 0, term: 1 }), "{error:?}");
    new.write(events([event("a", 1)])).await;
    let error = old.fail(events([event("a", 2)])).await;
    assert!(matches!(error, Error::Fenced { shard: 0, term: 1 }), "{error:?}");
    assert_eq!(seqs(&store, "a").await, [1]);
}

/// A term that nobody has claimed is no licence.
pub async fn a_term_to_come_is_refused(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.head.term += 1;
    let error = writer.fail(events([event("a", 1)])).await;
    assert!(matches!(error, Error::Fenced { shard: 0, term: 2 }), "{error:?}");
}

/// A batch that skips a number is refused.
pub async fn a_gap_is_refused(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.head.seq = 1;
    let error = writer.fail(events([event("a", 1)])).await;
    assert!(matches!(error, Error::Gap { shard: 0, after: 1 }), "{error:?}");
    assert_eq!(store.head(0).await.unwrap().seq, 0);
    assert_eq!(seqs(&store, "a").await, [0; 0]);
}

/// A batch that was applied cannot be applied again, even if it has no events.
pub async fn a_repeated_batch_is_refused(harness: &impl Harness) {
    let store = harness.open().await;
    let batch = Writer::claim(&store, 0).await.fenced(Batch::default());
    store.commit(batch.clone()).await.unwrap();
    let error = store.commit(batch).await.unwrap_err();
    assert!(matches!(error, Error::Gap { shard: 0, after: 0 }), "{error:?}");
}

/// A pipeline behind a batch that fails, fails as a whole.
pub async fn what_follows_a_failed_batch_fails_with_it(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events([event("a", 1)])).await;
    let failing = writer.send(events([event("a", 1)]));
    let next = writer.send(events([event("b", 1)]));
    let after_next = writer.send(events([event("c", 1)]));
    assert!(failing.await.is_err());
    assert!(matches!(next.await, Err(Error::Gap { shard: 0, after: 2 })));
    assert!(matches!(after_next.await, Err(Error::Gap { shard: 0, after: 3 })));
    assert_eq!(seqs(&store, "b").await, [0; 0]);
    assert_eq!(store.head(0).await.unwrap(), Head { term: 1, seq: 1 });
}

/// After a refusal the same number is free for another batch.
pub async fn a_refused_batch_can_be_replaced(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events([event("a", 1)])).await;
    writer.fail(events([event("a", 1)])).await;
    writer.write(events([event("a", 2)])).await;
    assert_eq!(seqs(&store, "a").await, [1, 2]);
}

/// Whoever did not hear the outcome asks where the shard stands.
pub async fn head_tells_whether_a_batch_is_there(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    drop(writer.send(events([event("a", 1)])));
    let head = store.claim(0).await.unwrap(); // stands in line behind the batch
    assert_eq!(head, Head { term: 2, seq: 1 });
    assert_eq!(seqs(&store, "a").await, [1]);
}

/// A fence is reason enough for a commit.
pub async fn a_batch_with_nothing_but_a_fence_advances(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(Batch::default()).await;
    writer.write(Batch::default()).await;
    assert_eq!(store.head(0).await.unwrap(), Head { term: 1, seq: 2 });
}

/// A batch of two shards, one of which has another holder, changes neither.
pub async fn one_stale_shard_refuses_the_whole_batch(harness: &impl Harness) {
    let store = harness.open().await;
    let mut good = Writer::claim(&store, 0).await;
    let mut stale = Writer::claim(&store, 1).await;
    store.claim(1).await.unwrap();
    let mut batch = good.fenced(events([event("a", 1)]));
    batch.merge(stale.fenced(events([event("b", 1)])));
    assert!(matches!(store.commit(batch).await, Err(Error::Fenced { shard: 1, term: 1 })));
    assert_eq!(store.head(0).await.unwrap(), Head { term: 1, seq: 0 });
    assert_eq!(seqs(&store, "a").await, [0; 0]);
}

/// Two batches that follow on from each other can be one.
pub async fn batches_merged_in_order_are_one_commit(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let mut batch = writer.fenced(events([event("a", 1)]));
    batch.merge(writer.fenced(events([event("a", 2)])));
    store.commit(batch).await.unwrap();
    assert_eq!(store.head(0).await.unwrap(), writer.head);
    assert_eq!(seqs(&store, "a").await, [1, 2]);
    assert_eq!(store.commits(), 1);
}

/// A batch of several shards moves each of them on, by as many numbers as it says.
pub async fn a_batch_of_several_shards_advances_each(harness: &impl Harness) {
    let store = harness.open().await;
    let mut first = Writer::claim(&store, 0).await;
    let mut second = Writer::claim(&store, u32::MAX).await;
    second.write(Batch::default()).await;
    let mut batch = first.fenced(events([event("a", 1)]));
    batch.merge(second.fenced(events([event("b", 1)])));
    batch.merge(second.fenced(events([event("b", 2)])));
    batch.merge(first.fenced(events([event("a", 2)])));
    store.commit(batch).await.unwrap();
    assert_eq!(store.head(0).await.unwrap(), Head { term: 1, seq: 2 });
    assert_eq!(store.head(u32::MAX).await.unwrap(), Head { term: 1, seq: 3 });
    assert_eq!((seqs(&store, "a").await, seqs(&store, "b").await), (vec![1, 2], vec![1, 2]));
    assert_eq!(store.commits(), 2);
}

/// A gap in the second fence of a batch is one.
pub async fn a_gap_of_one_shard_refuses_the_whole_batch(harness: &impl Harness) {
    let store = harness.open().await;
    let mut good = Writer::claim(&store, 0).await;
    let mut ahead = Writer::claim(&store, 1).await;
    ahead.head.seq = 4;
    let mut batch = good.fenced(events([event("a", 1)]));
    batch.merge(ahead.fenced(events([event("b", 1)])));
    assert!(matches!(store.commit(batch).await, Err(Error::Gap { shard: 1, after: 4 })));
    for shard in [0, 1] {
        assert_eq!(store.head(shard).await.unwrap(), Head { term: 1, seq: 0 });
    }
    assert_eq!(seqs(&store, "a").await, [0; 0]);
}

/// Two batches with the same number cannot be merged into one that passes.
pub async fn batches_merged_out_of_order_are_refused(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let mut batch = writer.fenced(events([event("a", 1)]));
    batch.merge(Batch { fences: vec![Fence { shard: 0, term: 1, after: 0, upto: 1 }], ..events([event("b", 1)]) });
    assert!(matches!(store.commit(batch).await, Err(Error::Gap { shard: 0, after: 0 })));
    assert_eq!(store.head(0).await.unwrap(), Head { term: 1, seq: 0 });
}
