//! How many commands and round trips things cost, and what happens when the server loses its scripts.

use crate::help::*;
use std::sync::Arc;
use std::time::Duration;
use steadfast_store::{Commons, TaskField, Write, Wrote};
use steadfast_store_redis::{Redis, Settings};
use steadfast_test_servers::{Proxy, RedisServer, wait_until};

fn tasks_of_a_plan(count: usize) -> Vec<Write> {
    let tasks = (0..count).map(|number| {
        let task = task_of(&format!("t{number}"));
        Write::Task { owner: instance("a"), fence: 0, fields: task_fields(&task), whole: true, as_of: None, task }
    });
    std::iter::once(whole_plan("a")).chain(tasks).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_of_100_tasks_is_one_round_trip() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port());
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let redis = Arc::new(Redis::open(Settings { url, ..settings(&server) }).unwrap());
    redis.fence(&tenant()).await.unwrap();
    server.forget_commands();
    proxy.hold_answers();
    let sent = tokio::spawn({
        let redis = redis.clone();
        async move { redis.send(tasks_of_a_plan(100)).await }
    });
    // No answer has come through yet, so whatever the server carries out was sent without waiting for one.
    wait_until("all have been sent", Duration::from_secs(20), || server.commands().get("evalsha") == Some(&101));
    assert_eq!(server.keys().len(), 101);
    assert!(!sent.is_finished());
    proxy.let_go();
    assert_eq!(sent.await.unwrap().unwrap(), vec![Wrote::Done; 101]);
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_and_locks_are_read_in_one_round_trip() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port());
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let redis = Arc::new(Redis::open(Settings { url, ..settings(&server) }).unwrap());
    redis.send(tasks_of_a_plan(100)).await.unwrap();
    server.forget_commands();
    proxy.hold_answers();
    let asked = tokio::spawn({
        let redis = redis.clone();
        async move {
            let tasks: Vec<_> = (0..100).map(|number| task_of(&format!("t{number}"))).collect();
            redis.tasks(&tasks).await
        }
    });
    wait_until("all have been asked for", Duration::from_secs(20), || server.commands().get("hgetall") == Some(&100));
    proxy.let_go();
    assert_eq!(asked.await.unwrap().unwrap().len(), 100);
    let tenants: Vec<_> = (0..50).map(|number| steadfast_kernel::TenantId::new(format!("t{number}")).unwrap()).collect();
    proxy.hold_answers();
    let asked = tokio::spawn(async move { redis.locks(&tenants).await });
    wait_until("all have been asked for", Duration::from_secs(20), || server.commands().get("pttl") == Some(&50));
    proxy.let_go();
    assert_eq!(asked.await.unwrap().unwrap(), []);
}

/// Those kinds of writes that follow on one of each.
pub(crate) fn the_others() -> Vec<Write> {
    vec![
        status("a", 1, "RUNNING"),
        Write::Adopt { task: task(), from: (Some(instance("a")), 1), to: None, fence: 1 },
        Write::DropCheckpoint { task: task(), fence: 1 },
        Write::RaiseFence { tenant: tenant(), to: 4 },
        Write::RenewLock { tenant: tenant(), holder: holder("a", 1), lease: LEASE },
        Write::ReleaseLock { tenant: tenant(), holder: holder("a", 1) },
        Write::Leave { instance: instance("a"), says: "life 1".into() },
    ]
}

/// What a client sends, without what scripts call.
fn sent(server: &RedisServer) -> u64 {
    let from_clients = ["evalsha", "eval", "script|load", "multi", "exec", "hello", "auth", "select", "ping", "watch"];
    server
        .commands()
        .iter()
        .filter(|(name, _)| from_clients.contains(&name.as_str()))
        .map(|(_, calls)| calls)
        .sum()
}

#[tokio::test]
async fn each_write_is_one_command() {
    let server = RedisServer::start();
    let redis = open(&server);
    redis.fence(&tenant()).await.unwrap();
    let mut writes = one_of_each();
    writes.extend(the_others());
    for write in writes {
        server.forget_commands();
        let outcome = send(&redis, write.clone()).await;
        assert!(matches!(outcome, Wrote::Done | Wrote::Fence(1) | Wrote::Before(None)), "{write:?} gave {outcome:?}");
        match write {
            Write::Beat { .. } => assert_eq!((sent(&server), server.commands()["set"]), (0, 1)),
            _ => assert_eq!(sent(&server), 1, "{write:?}: {:?}", server.commands()),
        }
    }
}

#[tokio::test]
async fn scripts_that_the_server_has_lost_are_loaded_again() {
    let server = RedisServer::start();
    let redis = open(&server);
    assert_eq!(send(&redis, take(holder("a", 1))).await, Wrote::Done);
    server.cli(&["SCRIPT", "FLUSH"]);
    let wrote = redis.send(one_of_each()).await.unwrap();
    let done = || Wrote::Done;
    assert_eq!(wrote, [Wrote::Before(None), done(), done(), done(), done(), Wrote::Fence(1), done()], "a beat is not sent twice");
    server.cli(&["SCRIPT", "FLUSH"]);
    assert_eq!(send(&redis, take(holder("b", 2))).await, Wrote::Held(holder("a", 1)));
}

#[tokio::test]
async fn writes_keep_their_order_when_only_some_scripts_are_lost() {
    let server = RedisServer::start();
    let redis = open(&server);
    redis.send(one_of_each()).await.unwrap();
    server.cli(&["SCRIPT", "FLUSH"]);
    // Another client has brought the script that releases locks, and only that.
    let release = concat!(include_str!("../../src/lua/common.lua"), include_str!("../../src/lua/release_lock.lua"));
    server.cli(&["SCRIPT", "LOAD", release]);
    let wrote = redis
        .send(vec![
            Write::RenewLock { tenant: tenant(), holder: holder("a", 1), lease: LEASE },
            Write::ReleaseLock { tenant: tenant(), holder: holder("a", 1) },
            take(holder("b", 2)),
        ])
        .await
        .unwrap();
    // The release was carried out before the renewal could be, and all of them were sent once more, in order.
    assert_eq!(wrote, [Wrote::Missing, Wrote::Missing, Wrote::Done]);
}

#[tokio::test]
async fn more_writes_than_fit_into_one_round_trip_are_all_carried_out_in_order() {
    let server = RedisServer::start();
    let redis = open(&server);
    let next = || Write::NextFence { tenant: tenant(), above: 0 };
    let wrote = redis.send((0..20_005).map(|_| next()).collect()).await.unwrap();
    assert!(wrote.iter().enumerate().all(|(index, wrote)| *wrote == Wrote::Fence(index as u64 + 1)));
    assert_eq!(wrote.len(), 20_005);
    let task = |number: usize| task_of(&format!("t{number}"));
    let write =
        Write::Task { task: task(20_004), owner: instance("a"), fence: 0, fields: task_fields(&task(20_004)), whole: true, as_of: None };
    send(&redis, write).await;
    let found = redis.tasks(&(0..20_005).map(task).collect::<Vec<_>>()).await.unwrap();
    assert_eq!(found.iter().map(|found| &found.task).collect::<Vec<_>>(), [&task(20_004)]);
    assert_eq!(redis.send(vec![]).await.unwrap(), []);
}

#[tokio::test]
async fn a_large_text_in_a_field_is_kept() {
    let server = RedisServer::start();
    let redis = open(&server);
    send(&redis, whole_task("a", 0)).await;
    let text = "d".repeat(1 << 20);
    let fields = vec![(TaskField::Definition, text.clone())];
    send(&redis, Write::Task { task: task(), owner: instance("a"), fence: 0, fields, whole: false, as_of: None }).await;
    assert_eq!(redis.tasks(&[task()]).await.unwrap()[0].definition, text);
}
