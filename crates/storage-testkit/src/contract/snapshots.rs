//! Checks snapshots: put and replaced byte for byte; their content is opaque to a store.

use super::Harness;
use super::fixture::{Writer, event, events, snapshot, snapshots};
use steadfast_kernel::{EntityId, Snapshot};
use steadfast_store::{Batch, Store};

async fn saved(store: &impl Store, id: &str) -> Option<Snapshot> {
    store.snapshot(&EntityId::from_stored(id).unwrap()).await.unwrap()
}

/// All fields of a snapshot, whatever its bytes are.
pub async fn a_snapshot_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    let all: Vec<u8> = (0..=255).collect();
    let full = Snapshot { fold: u32::MAX, state: all.repeat(1_000).into(), ..snapshot("a", 1 << 40) };
    let empty = Snapshot { state: Vec::new().into(), ..snapshot("b", 1) };
    Writer::claim(&store, 0).await.write(snapshots([full.clone(), empty.clone()])).await;
    assert_eq!(saved(&store, "a").await, Some(full));
    assert_eq!(saved(&store, "b").await, Some(empty));
    assert_eq!(saved(&store, "c").await, None);
}

/// The last one put is the only one, also if it is of an earlier entry.
pub async fn a_snapshot_is_replaced(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    for seq in [1, 200, 100] {
        writer.write(snapshots([snapshot("a", seq)])).await;
        assert_eq!(saved(&store, "a").await, Some(snapshot("a", seq)));
    }
}

/// A batch that was merged from several may have several.
pub async fn the_last_of_several_snapshots_of_a_batch_stays(harness: &impl Harness) {
    let store = harness.open().await;
    Writer::claim(&store, 0).await.write(snapshots([1, 3, 2].map(|seq| snapshot("a", seq)))).await;
    assert_eq!(saved(&store, "a").await, Some(snapshot("a", 2)));
}

/// Runs, limits and letter boxes of alike names, and ids that begin alike.
pub async fn snapshots_of_entities_are_apart(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = ["a", "a/1", "key/a", "limit:key/a", "limit:workflow/a", "letters:a", "plan:a", "lock:a"];
    let all: Vec<_> = ids.into_iter().zip(1..).map(|(id, seq)| snapshot(id, seq)).collect();
    Writer::claim(&store, 0).await.write(snapshots(all.clone())).await;
    for (id, expected) in ids.into_iter().zip(all) {
        assert_eq!(saved(&store, id).await, Some(expected));
    }
}

/// A batch that fails saves nothing.
pub async fn snapshots_stand_and_fall_with_their_events(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(Batch { snapshots: vec![snapshot("a", 1)], ..events([event("a", 1)]) }).await;
    writer.fail(Batch { snapshots: vec![snapshot("a", 2)], ..events([event("a", 1)]) }).await;
    assert_eq!(saved(&store, "a").await, Some(snapshot("a", 1)));
}
