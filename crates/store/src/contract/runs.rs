//! Rows of runs: put, replaced, and listed while they are open.

use super::Harness;
use super::fixture::{Writer, ended, open_ids, row, rows, run};
use crate::{RunRow, Store};
use steadfast_kernel::Status;

/// All fields of a row.
pub async fn a_row_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    let waiting = RunRow { shard: 5, status: Status::Waiting, wait: Some("BACKOFF".into()), ..row("a") };
    let failed = ended("b", Status::Failed);
    Writer::claim(&store, 0).await.write(rows([waiting.clone(), failed.clone()])).await;
    assert_eq!(store.run(&run("a")).await.unwrap(), Some(waiting));
    assert_eq!(store.run(&run("b")).await.unwrap(), Some(failed));
    assert_eq!(store.run(&run("c")).await.unwrap(), None);
}

/// A row put again is the new one, in every field.
pub async fn a_row_is_replaced(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let waiting = RunRow { status: Status::Waiting, wait: Some("TIMER".into()), ..row("a") };
    for row in [row("a"), waiting, ended("a", Status::Completed), row("a")] {
        writer.write(rows([row.clone()])).await;
        assert_eq!(store.run(&run("a")).await.unwrap(), Some(row));
    }
    assert_eq!(open_ids(&store, 0).await, ["a"]);
}

/// The order is that of the bytes of the ids.
pub async fn open_runs_come_in_the_order_of_their_ids(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = ["b", "a", "B", "a/1", "a-1", "10", "9", "a.1", "_"];
    Writer::claim(&store, 0).await.write(rows(ids.map(row))).await;
    assert_eq!(open_ids(&store, 0).await, ["10", "9", "B", "_", "a", "a-1", "a.1", "a/1", "b"]);
}

/// `after` and `limit` cut the list into pages that meet, also after an id that is not there.
pub async fn open_runs_come_in_pages(harness: &impl Harness) {
    let store = harness.open().await;
    Writer::claim(&store, 0).await.write(rows(["a", "b", "c", "d", "e"].map(row))).await;
    let page = async |after: Option<&str>, limit| {
        let rows = store.open_runs(0, after.map(run).as_ref(), limit).await.unwrap();
        rows.iter().map(|row| row.run.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 2).await, ["a", "b"]);
    assert_eq!(page(Some("b"), 2).await, ["c", "d"]);
    assert_eq!(page(Some("d"), 2).await, ["e"]);
    assert_eq!(page(Some("e"), 2).await, [""; 0]);
    assert_eq!(page(Some("bb"), 1).await, ["c"]);
    assert_eq!(page(None, 0).await, [""; 0]);
}

/// Final runs leave the list and keep their rows.
pub async fn runs_that_ended_are_not_open(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let waiting = RunRow { status: Status::Waiting, ..row("d") };
    writer.write(rows([row("a"), row("b"), row("c"), waiting])).await;
    writer.write(rows([ended("a", Status::Completed), ended("c", Status::Failed)])).await;
    assert_eq!(open_ids(&store, 0).await, ["b", "d"]);
    assert!(store.run(&run("a")).await.unwrap().is_some());
}

/// A shard lists its own runs only.
pub async fn open_runs_of_shards_are_apart(harness: &impl Harness) {
    let store = harness.open().await;
    let of = |shard, id| RunRow { shard, ..row(id) };
    Writer::claim(&store, 0).await.write(rows([of(0, "a"), of(1, "b"), of(0, "c"), of(1, "d")])).await;
    assert_eq!(open_ids(&store, 0).await, ["a", "c"]);
    assert_eq!(open_ids(&store, 1).await, ["b", "d"]);
    assert_eq!(open_ids(&store, 2).await, [""; 0]);
}
