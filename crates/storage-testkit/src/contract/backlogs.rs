//! Checks backlogs: the first due time and the count of pending messages, per shard.

use super::Harness;
use super::fixture::{Writer, add, arm, changes, disarm, envelope, messages, settle, time, timer};
use steadfast_kernel::{Envelope, TimerName};
use steadfast_store::{Backlog, OutboxChange, ShardId, Store};

fn backlog(shard: ShardId, first_due: Option<i64>, messages: u64) -> Backlog {
    Backlog { shard, first_due: first_due.map(time), messages }
}

fn of_shard(shard: ShardId, envelope: &Envelope) -> OutboxChange {
    OutboxChange::Add { shard, envelope: envelope.clone() }
}

/// Of every shard that is asked about, in the order in which it is asked about.
pub async fn what_waits_is_told_by_shard(harness: &impl Harness) {
    let store = harness.open().await;
    assert_eq!(store.backlogs(&[1, 0]).await.unwrap(), [backlog(1, None, 0), backlog(0, None, 0)]);
    let mut writer = Writer::claim(&store, 0).await;
    let (late, early) = (timer("a", TimerName::Deadline, 70), timer("b", TimerName::Deadline, 50));
    writer
        .write(changes([arm(0, &late), arm(0, &early), arm(1, &timer("c", TimerName::Deadline, 60))]))
        .await;
    writer
        .write(messages([add(&envelope("a", 1)), add(&envelope("b", 1)), of_shard(2, &envelope("d", 1))]))
        .await;
    assert_eq!(store.backlogs(&[0, 1, 2]).await.unwrap(), [backlog(0, Some(50), 2), backlog(1, Some(60), 0), backlog(2, None, 1)]);
    writer.write(changes([disarm(&early)])).await;
    writer.write(messages([settle(&envelope("a", 1))])).await;
    assert_eq!(store.backlogs(&[0]).await.unwrap(), [backlog(0, Some(70), 1)]);
    assert_eq!(store.backlogs(&[]).await.unwrap(), []);
}

/// Who has very many need not know how many.
pub async fn messages_are_counted_up_to_a_number(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(messages((1..=Backlog::COUNTED_MAX).map(|seq| add(&envelope("a", seq))))).await;
    assert_eq!(store.backlogs(&[0]).await.unwrap(), [backlog(0, None, Backlog::COUNTED_MAX)]);
    writer.write(messages((1..=9).map(|seq| add(&envelope("b", seq))))).await;
    assert_eq!(store.backlogs(&[0]).await.unwrap(), [backlog(0, None, Backlog::COUNTED_MAX)]);
}
