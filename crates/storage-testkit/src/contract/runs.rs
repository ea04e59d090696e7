//! Checks rows of runs: put and replaced.

use super::Harness;
use super::fixture::{Writer, ended, recover_ids, row, rows, run, time, workflow};
use steadfast_kernel::run::Recover;
use steadfast_kernel::{Status, Timestamp};
use steadfast_store::{RunFilter, RunRow, Store};

/// A row with everything.
fn full(id: &str) -> RunRow {
    RunRow {
        shard: 5,
        workflow: workflow("team/checkout"),
        tenant: Some("acme \u{1f980}".into()),
        status: Status::Interrupted,
        wait: Some("BACKOFF".into()),
        text: Some("the card's issuer said \u{201c}sp\u{e4}ter\u{201d}\nand \0 no more".into()),
        recover: Some(Recover::Interrupt),
        started_at: Timestamp::MAX,
        ended_at: Some(Timestamp::EPOCH),
        ..row(id)
    }
}

/// All fields of a row.
pub async fn a_row_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    let empty = RunRow { tenant: Some(String::new()), text: Some(String::new()), started_at: Timestamp::EPOCH, ..row("b") };
    let failed = ended("c", Status::Failed);
    Writer::claim(&store, 0).await.write(rows([full("a"), empty.clone(), failed.clone()])).await;
    assert_eq!(store.run(&run("a")).await.unwrap(), Some(full("a")));
    assert_eq!(store.run(&run("b")).await.unwrap(), Some(empty));
    assert_eq!(store.run(&run("c")).await.unwrap(), Some(failed));
    assert_eq!(store.run(&run("d")).await.unwrap(), None);
}

/// Whatever a run is, its row says so.
pub async fn every_status_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    for status in Status::ALL {
        writer.write(rows([RunRow { status, ..row("a") }])).await;
        assert_eq!(store.run(&run("a")).await.unwrap().map(|row| row.status), Some(status));
    }
}

/// A row put again is the new one, in every field, and the only one of its run.
pub async fn a_row_is_replaced(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let waiting = RunRow { status: Status::Waiting, wait: Some("TIMER".into()), text: Some("half".into()), ..row("a") };
    let moved = RunRow { shard: 1, ..row("a") };
    let other = RunRow { workflow: workflow("ship"), ..row("a") };
    let owned = RunRow { tenant: Some("acme".into()), ..row("a") };
    let later = RunRow { started_at: time(8), ..row("a") };
    let others = [waiting, ended("a", Status::Completed), moved, other, owned, later, full("a")];
    for row in others.into_iter().flat_map(|other| [row("a"), other, row("a")]) {
        writer.write(rows([row.clone()])).await;
        assert_eq!(store.run(&run("a")).await.unwrap(), Some(row.clone()));
        assert_eq!(store.runs(&RunFilter::default(), None, 9).await.unwrap(), [row]);
    }
    assert_eq!(recover_ids(&store, 0).await, ["a"]);
}
