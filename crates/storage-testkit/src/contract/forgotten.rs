//! Checks truncation of journals: a prefix, or the whole journal.

use super::Harness;
use super::fixture::{Writer, event, events, forget, forgotten, record, snapshot, snapshots};
use steadfast_kernel::{EntityId, Seq};
use steadfast_store::{Append, Batch, Position, Store};

fn entity(id: &str) -> EntityId {
    EntityId::from_stored(id).unwrap()
}

/// Entries of that entity, by its stored id.
fn entries(id: &str, seqs: impl IntoIterator<Item = Seq>) -> Batch {
    events(seqs.into_iter().map(|seq| Append { shard: 0, entity: entity(id), record: record(seq) }))
}

async fn seqs(store: &impl Store, id: &str) -> Vec<Seq> {
    let journal = store.journal(&entity(id), 0, usize::MAX).await.unwrap();
    journal.iter().map(|record| record.seq).collect()
}

/// What follows a place, as text, in the feed of all or of that one.
async fn fed(store: &impl Store, after: &Position, id: Option<&str>) -> Vec<String> {
    let fed = store.feed(after, id.map(entity).as_ref(), usize::MAX).await.unwrap();
    fed.iter().map(|fed| format!("{}/{}", fed.entity, fed.record.seq)).collect()
}

/// The entries before that one are gone, those from it on are as they were, and so is what was saved.
pub async fn the_beginning_of_a_journal_is_forgotten(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(Batch { snapshots: vec![snapshot("key:a", 3)], ..entries("key:a", 1..=6) }).await;
    for (before, left) in [(0, 1), (1, 1), (3, 3), (2, 3), (4, 4)] {
        writer.write(forget([forgotten("key:a", Some(before))])).await;
        assert_eq!(seqs(&store, "key:a").await, (left..=6).collect::<Vec<_>>(), "before {before}");
    }
    assert_eq!(store.journal(&entity("key:a"), 0, 1).await.unwrap(), [record(4)]);
    assert_eq!(store.snapshot(&entity("key:a")).await.unwrap(), Some(snapshot("key:a", 3)));
    writer.write(entries("key:a", [7])).await;
    assert_eq!(seqs(&store, "key:a").await, [4, 5, 6, 7]);
    writer.fail(entries("key:a", [5])).await;
    writer.write(forget([forgotten("key:a", Some(99))])).await;
    assert_eq!(seqs(&store, "key:a").await, [0; 0]);
}

/// All of a journal and what was saved of it is gone; whoever forgets need not know whether there is anything.
pub async fn a_whole_journal_is_forgotten_with_its_snapshot(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(Batch { snapshots: vec![snapshot("key:a", 2)], ..entries("key:a", 1..=3) }).await;
    writer
        .write(forget([forgotten("key:a", None), forgotten("key:b", None), forgotten("key:c", Some(3))]))
        .await;
    assert_eq!(seqs(&store, "key:a").await, [0; 0]);
    assert_eq!(store.snapshot(&entity("key:a")).await.unwrap(), None);
    assert_eq!(fed(&store, &Position::default(), None).await, [""; 0]);
    writer.write(forget([forgotten("key:a", None)])).await;
}

/// Whatever else a batch has of what it forgets is applied before that.
pub async fn a_batch_forgets_after_all_else(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(entries("key:a", 1..=3)).await;
    let mut batch = Batch { forgotten: vec![forgotten("key:a", Some(4))], ..entries("key:a", [4, 5]) };
    batch.merge(Batch { forgotten: vec![forgotten("key:b", None)], snapshots: vec![snapshot("key:b", 1)], ..entries("key:b", [1]) });
    writer.write(batch).await;
    assert_eq!(seqs(&store, "key:a").await, [4, 5]);
    assert_eq!(seqs(&store, "key:b").await, [0; 0]);
    assert_eq!(store.snapshot(&entity("key:b")).await.unwrap(), None);
}

/// A journal that was forgotten begins anew, and an entry of it is written once, as before.
pub async fn a_forgotten_journal_begins_anew(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    for round in 1..=3 {
        writer.write(entries("key:a", 1..=round)).await;
        assert_eq!(seqs(&store, "key:a").await, (1..=round).collect::<Vec<_>>());
        writer.fail(entries("key:a", [1])).await;
        writer.write(forget([forgotten("key:a", None)])).await;
    }
    writer.write(Batch { snapshots: vec![snapshot("key:a", 1)], ..entries("key:a", [1]) }).await;
    assert_eq!(store.snapshot(&entity("key:a")).await.unwrap(), Some(snapshot("key:a", 1)));
}

/// Those that follow what happens miss nothing that is kept, and are given no place twice, also by a new handle.
pub async fn places_of_what_is_forgotten_are_not_given_again(harness: &impl Harness) {
    let mut store = harness.open().await;
    let mut seen = Position::default();
    for round in 1..=4 {
        let mut writer = Writer::claim(&store, 0).await;
        writer.write(entries("key:a", 1..=3)).await;
        let new = store.feed(&seen, None, 99).await.unwrap();
        assert_eq!(new.len(), 3, "round {round}");
        for fed in new {
            assert!(!seen.covers(fed.place), "a place was given twice: {fed:?}");
            seen.advance(fed.place);
        }
        writer.write(forget([forgotten("key:a", None)])).await;
        assert_eq!(store.last().await.unwrap(), seen);
        if round % 2 == 0 {
            drop(store);
            store = harness.open().await;
            assert_eq!(store.last().await.unwrap(), seen);
        }
    }
}

/// What is gone is skipped in the feed, and what is between it and after it is there, of all and of one.
pub async fn the_feed_skips_what_is_forgotten(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    for seq in 1..=4 {
        writer.write(entries("key:a", [seq])).await;
        writer.write(entries("key:b", [seq])).await;
    }
    let second: Position = store.feed(&Position::default(), None, 2).await.unwrap().iter().map(|fed| fed.place).collect();
    writer.write(forget([forgotten("key:a", Some(4)), forgotten("key:b", Some(2))])).await;
    assert_eq!(fed(&store, &Position::default(), None).await, ["key:b/2", "key:b/3", "key:a/4", "key:b/4"]);
    assert_eq!(fed(&store, &second, None).await, ["key:b/2", "key:b/3", "key:a/4", "key:b/4"]);
    assert_eq!(fed(&store, &Position::default(), Some("key:a")).await, ["key:a/4"]);
    writer.write(forget([forgotten("key:a", None)])).await;
    writer.write(entries("key:a", [1])).await;
    assert_eq!(fed(&store, &second, Some("key:a")).await, ["key:a/1"]);
    assert_eq!(fed(&store, &Position::default(), None).await, ["key:b/2", "key:b/3", "key:b/4", "key:a/1"]);
}

/// Names that begin alike and other kinds of entities are other journals.
pub async fn other_journals_are_kept(harness: &impl Harness) {
    let store = harness.open().await;
    let others = ["a", "key/a", "key:A", "key:a-1", "key:a/b", "key:aa", "letters:a", "limit:key/a", "lock:a", "plan:a"];
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(entries("key:a", 1..=3)).await;
    for id in others {
        writer.write(entries(id, 1..=3)).await;
    }
    writer.write(snapshots(others.map(|id| snapshot(id, 3)))).await;
    writer.write(forget([forgotten("key:a", Some(2))])).await;
    writer.write(forget([forgotten("key:a", None)])).await;
    for id in others {
        assert_eq!(seqs(&store, id).await, [1, 2, 3], "{id}");
        assert_eq!(store.snapshot(&entity(id)).await.unwrap(), Some(snapshot(id, 3)), "{id}");
    }
}

/// A batch that goes on with a journal that another one removes is a commit of its own; any other can be merged.
pub async fn what_begins_anew_is_not_merged_with_its_end(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let mut first = entries("key:a", 1..=2);
    let end = Batch { forgotten: vec![forgotten("key:a", None)], ..entries("key:b", [1]) };
    assert!(first.takes(&end));
    first.merge(end);
    let (anew, other) = (entries("key:a", [1]), Batch { forgotten: vec![forgotten("key:a", None)], ..entries("key:b", [2]) });
    assert!(!first.takes(&anew), "it would be removed with what was before it");
    assert!(first.takes(&other) && first.takes(&Batch::default()));
    first.merge(other);
    writer.write(first).await;
    writer.write(anew).await;
    assert_eq!(seqs(&store, "key:a").await, [1]);
    assert_eq!(seqs(&store, "key:b").await, [1, 2]);
    let (mut shortened, more) = (forget([forgotten("key:b", Some(2))]), entries("key:b", [3]));
    assert!(shortened.takes(&more), "its end is not removed");
    shortened.merge(more);
    writer.write(shortened).await;
    assert_eq!(seqs(&store, "key:b").await, [2, 3]);
}

/// A batch that fails forgets nothing.
pub async fn what_a_failed_batch_forgets_is_there(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(Batch { snapshots: vec![snapshot("key:a", 2)], ..entries("key:a", 1..=3) }).await;
    writer.write(events([event("b", 1)])).await;
    let last = store.last().await.unwrap();
    let failing = Batch { forgotten: vec![forgotten("key:a", None), forgotten("b", Some(9))], ..events([event("b", 1)]) };
    writer.fail(failing).await;
    assert_eq!(seqs(&store, "key:a").await, [1, 2, 3]);
    assert_eq!(seqs(&store, "b").await, [1]);
    assert_eq!(store.snapshot(&entity("key:a")).await.unwrap(), Some(snapshot("key:a", 2)));
    assert_eq!(store.last().await.unwrap(), last);
}

/// What is forgotten is so for the next handle, too.
pub async fn what_is_forgotten_stays_so(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(entries("key:a", 1..=3)).await;
    writer.write(Batch { snapshots: vec![snapshot("key:b", 3)], ..entries("key:b", 1..=3) }).await;
    writer.write(forget([forgotten("key:a", Some(3)), forgotten("key:b", None)])).await;
    drop(store);
    let store = harness.open().await;
    assert_eq!(seqs(&store, "key:a").await, [3]);
    assert_eq!(seqs(&store, "key:b").await, [0; 0]);
    assert_eq!(store.snapshot(&entity("key:b")).await.unwrap(), None);
    assert_eq!(fed(&store, &Position::default(), None).await, ["key:a/3"]);
}
