//! Checks stored texts of definitions: the first text under a hash stays.

use super::Harness;
use super::fixture::{Writer, event, events, time, workflow};
use steadfast_store::{Batch, Definition, Store};

fn definition(hash: &str, text: &str, kept_at: i64) -> Definition {
    Definition { hash: hash.into(), workflow: workflow("team/bill"), text: text.into(), kept_at: time(kept_at) }
}

fn kept(definitions: impl IntoIterator<Item = Definition>) -> Batch {
    Batch { definitions: definitions.into_iter().collect(), ..Batch::default() }
}

/// To the byte, for the next handle too, and without a fence.
pub async fn a_definition_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    let text = "workflow: bill # \u{1f980}\r\n\tsteps: \"a'b\\\"\n";
    store.commit(kept([definition("1f", text, 5)])).await.unwrap();
    assert_eq!(store.definitions().await.unwrap(), [definition("1f", text, 5)]);
    drop(store);
    assert_eq!(harness.open().await.definitions().await.unwrap(), [definition("1f", text, 5)]);
}

/// The same again, later and in the same batch, changes nothing.
pub async fn what_was_kept_first_stays(harness: &impl Harness) {
    let store = harness.open().await;
    store.commit(kept([definition("1f", "one", 5), definition("1f", "two", 4)])).await.unwrap();
    store.commit(kept([definition("1f", "three", 3)])).await.unwrap();
    assert_eq!(store.definitions().await.unwrap(), [definition("1f", "one", 5)]);
}

/// Oldest first.
pub async fn definitions_come_by_their_time(harness: &impl Harness) {
    let store = harness.open().await;
    store
        .commit(kept([definition("b", "", 5), definition("c", "", 4), definition("a", "", 5)]))
        .await
        .unwrap();
    let hashes: Vec<_> = store.definitions().await.unwrap().into_iter().map(|definition| definition.hash).collect();
    assert_eq!(hashes, ["c", "a", "b"]);
}

/// They stand and fall with what is written along with them.
pub async fn a_failed_batch_keeps_no_definition(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(events([event("a", 1)])).await;
    let mut failing = kept([definition("1f", "one", 5)]);
    failing.merge(events([event("a", 1)]));
    writer.fail(failing).await;
    assert_eq!(store.definitions().await.unwrap(), []);
}
