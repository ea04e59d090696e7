//! Checks the list of runs that a restart has to recover.

use super::Harness;
use super::fixture::{Writer, ended, recover_ids, row, rows, run, time};
use steadfast_kernel::Status;
use steadfast_kernel::run::Recover;
use steadfast_store::{RunCursor, RunRow, Store};

fn asleep(id: &str) -> RunRow {
    RunRow { status: Status::Waiting, wait: Some("TIMER".into()), recover: None, ..row(id) }
}

fn since(id: &str, started_at: i64) -> RunRow {
    RunRow { started_at: time(started_at), ..row(id) }
}

/// The order is that of their beginnings, and then of the bytes of the ids.
pub async fn the_oldest_come_first(harness: &impl Harness) {
    let store = harness.open().await;
    let ids = ["b", "a", "B", "a/1", "a-1", "10", "9", "a.1", "_"];
    let mixed = ids.map(row).into_iter().chain([since("c", 9), since("z", 3), since("d", 8)]);
    Writer::claim(&store, 0).await.write(rows(mixed)).await;
    assert_eq!(recover_ids(&store, 0).await, ["z", "10", "9", "B", "_", "a", "a-1", "a.1", "a/1", "b", "d", "c"]);
}

/// `after` and `limit` cut the list into pages that meet, also after a place where nothing is.
pub async fn runs_come_in_pages(harness: &impl Harness) {
    let store = harness.open().await;
    let mixed = ["a", "b", "c", "d"].into_iter().flat_map(|id| [row(id), asleep(&format!("{id}/asleep"))]);
    Writer::claim(&store, 0).await.write(rows(mixed.chain([since("B", 9)]))).await;
    let page = async |after: Option<(i64, &str)>, limit| {
        let after = after.map(|(started_at, id)| RunCursor { started_at: time(started_at), run: run(id) });
        let rows = store.to_recover(0, after.as_ref(), limit).await.unwrap();
        rows.iter().map(|row| row.run.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 2).await, ["a", "b"]);
    assert_eq!(page(Some((7, "b")), 2).await, ["c", "d"]);
    assert_eq!(page(Some((7, "d")), 2).await, ["B"]);
    assert_eq!(page(Some((9, "B")), 2).await, [""; 0]);
    assert_eq!(page(Some((7, "bb")), 1).await, ["c"]);
    assert_eq!(page(Some((8, "a")), 9).await, ["B"]);
    assert_eq!(page(Some((6, "z")), 1).await, ["a"]);
    assert_eq!(page(None, 0).await, [""; 0]);
}

/// It is the row that says so, whatever the status.
pub async fn rows_say_what_is_to_be_done(harness: &impl Harness) {
    let store = harness.open().await;
    let host = row("a");
    let interrupt = RunRow { status: Status::Waiting, recover: Some(Recover::Interrupt), ..row("b") };
    Writer::claim(&store, 0).await.write(rows([host.clone(), interrupt.clone(), asleep("c")])).await;
    assert_eq!(store.to_recover(0, None, 9).await.unwrap(), [host, interrupt]);
}

/// Runs that sleep or have ended are not there, and come back with what there is to do.
pub async fn runs_leave_and_return(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(rows([row("a"), row("b"), row("c"), asleep("d")])).await;
    writer.write(rows([ended("a", Status::Completed), asleep("b")])).await;
    assert_eq!(recover_ids(&store, 0).await, ["c"]);
    writer.write(rows([row("a"), row("b"), row("d"), ended("c", Status::Failed)])).await;
    assert_eq!(recover_ids(&store, 0).await, ["a", "b", "d"]);
}

/// A shard lists its own runs only.
pub async fn runs_of_shards_are_apart(harness: &impl Harness) {
    let store = harness.open().await;
    let of = |shard, id| RunRow { shard, ..row(id) };
    Writer::claim(&store, 0).await.write(rows([of(0, "a"), of(1, "b"), of(0, "c"), of(1, "d")])).await;
    assert_eq!(recover_ids(&store, 0).await, ["a", "c"]);
    assert_eq!(recover_ids(&store, 1).await, ["b", "d"]);
    assert_eq!(recover_ids(&store, 2).await, [""; 0]);
}
