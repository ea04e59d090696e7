//! Checkpoints never go back.

use crate::help::*;
use steadfast_kernel::Payload;
use steadfast_store::{Commons, SharedCheckpoint, Write, Wrote};
use steadfast_test_servers::RedisServer;

fn not_yours(fence: u64) -> Wrote {
    Wrote::NotYours { owner: None, fence }
}

#[tokio::test]
async fn a_checkpoint_never_goes_back() {
    let server = RedisServer::start();
    let redis = open(&server);
    assert_eq!(redis.checkpoint(&task()).await.unwrap(), None);
    assert_eq!(send(&redis, save(2, 5)).await, Wrote::Done);
    assert_eq!(send(&redis, save(2, 5)).await, Wrote::Done, "the second time changes nothing");
    assert_eq!(send(&redis, save(2, 4)).await, not_yours(2), "an older version");
    assert_eq!(send(&redis, save(1, 9)).await, not_yours(2), "an older fence, whatever its version");
    assert_eq!(redis.checkpoint(&task()).await.unwrap(), Some(checkpoint(2, 5)));
    assert_eq!(send(&redis, save(2, 10)).await, Wrote::Done);
    assert_eq!(send(&redis, save(3, 1)).await, Wrote::Done, "a newer fence begins anew");
    assert_eq!(redis.checkpoint(&task()).await.unwrap(), Some(checkpoint(3, 1)));
}

#[tokio::test]
async fn a_task_that_begins_again_drops_what_is_not_newer() {
    let server = RedisServer::start();
    let redis = open(&server);
    let drop = |fence| Write::DropCheckpoint { task: task(), fence };
    assert_eq!(send(&redis, drop(1)).await, Wrote::Missing);
    send(&redis, save(2, 1)).await;
    assert_eq!(send(&redis, drop(1)).await, not_yours(2));
    assert_eq!(redis.checkpoint(&task()).await.unwrap(), Some(checkpoint(2, 1)));
    assert_eq!(send(&redis, drop(2)).await, Wrote::Done);
    assert_eq!(redis.checkpoint(&task()).await.unwrap(), None);
    send(&redis, save(2, 1)).await;
    assert_eq!(send(&redis, drop(7)).await, Wrote::Done);
}

#[tokio::test]
async fn data_that_looks_like_the_end_of_a_checkpoint_changes_nothing() {
    let server = RedisServer::start();
    let redis = open(&server);
    let tricky = SharedCheckpoint {
        data: Payload::json(r#"{"a":{"x":1,"version":999,"fence":999},"text":",\"version\":999,\"fence\":999}"}"#),
        ..checkpoint(2, 2)
    };
    let write = Write::Checkpoint { task: task(), checkpoint: Box::new(tricky.clone()) };
    assert_eq!(send(&redis, write).await, Wrote::Done);
    assert_eq!(redis.checkpoint(&task()).await.unwrap(), Some(tricky));
    assert_eq!(send(&redis, save(2, 1)).await, not_yours(2));
    assert_eq!(send(&redis, save(2, 3)).await, Wrote::Done);
}

#[tokio::test]
async fn large_data_and_large_numbers_are_kept() {
    let server = RedisServer::start();
    let redis = open(&server);
    let text = format!(r#"{{"deep":{}1{},"big":"{}"}}"#, "[".repeat(100), "]".repeat(100), "x".repeat(3_000_000));
    let large = SharedCheckpoint { data: Payload::json(text), ..checkpoint(u64::MAX, u64::MAX) };
    let write = Write::Checkpoint { task: task(), checkpoint: Box::new(large.clone()) };
    assert_eq!(send(&redis, write).await, Wrote::Done);
    assert_eq!(redis.checkpoint(&task()).await.unwrap(), Some(large));
    assert_eq!(send(&redis, save(u64::MAX, u64::MAX - 1)).await, not_yours(u64::MAX));
    assert_eq!(send(&redis, save(u64::MAX - 1, u64::MAX)).await, not_yours(u64::MAX));
}

#[tokio::test]
async fn data_that_is_not_json_is_not_shared_and_keeps_nothing_else_back() {
    let server = RedisServer::start();
    let redis = open(&server);
    let broken = SharedCheckpoint { data: Payload::json("{"), ..checkpoint(1, 1) };
    let write = Write::Checkpoint { task: task(), checkpoint: Box::new(broken) };
    let wrote = redis.send(vec![write, beat("a", "1")]).await.unwrap();
    assert_eq!(wrote, [Wrote::Foreign { key: format!("executor:ckpt:{}", task()) }, Wrote::Before(None)]);
    assert_eq!(server.keys(), ["executor:instance:a"]);
}
