//! Rolled back, or called off, where the task was not begun.
//!
//! Subject: `crates/runtime/src/engine/adopt.rs`.

use super::mirror::text;
use super::{begin, instance, is_gone, mirror_is_true, start, task_is, until};
use std::sync::{Arc, Mutex};
use steadfast::memory::Memory;
use steadfast::{Engine, Failure, Plan, Task, TaskStatus};
use steadfast_test_servers::RedisServer;

/// What was done and undone, by whom, with what.
type Did = Arc<Mutex<Vec<String>>>;

/// Four stages, of which the third hangs where it is told to, and the second cannot be undone.
fn plan(name: &'static str, did: &Did, hangs: bool) -> Plan {
    let work = |stage: &'static str| {
        let did = did.clone();
        move |task: Task| {
            did.lock().unwrap().push(format!("{name} {stage}"));
            let hangs = hangs && stage == "s3";
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Failure>(serde_json::json!({ stage: format!("{name}-{}", task.tenant()) }))
            }
        }
    };
    let undo = |stage: &'static str| {
        let did = did.clone();
        move |task: Task| {
            let left: String = task.checkpoint(stage).unwrap_or_else(|_| "nothing".into());
            did.lock().unwrap().push(format!("{name} undoes {stage} with {left}"));
            async { Ok::<_, Failure>(()) }
        }
    };
    let plan = Plan::new("switch").stage("s1", work("s1")).undo(undo("s1")).stage("s2", work("s2"));
    plan.stage("s3", work("s3")).undo(undo("s3")).stage("s4", work("s4")).undo(undo("s4"))
}

/// A task that a has begun, in a state that it came to before a was gone.
async fn left(redis: &RedisServer, did: &Did, hangs: bool) -> Engine {
    let a = start(instance(redis, "a", &Memory::new()).plan(plan("a", did, hangs))).await;
    let b = start(instance(redis, "b", &Memory::new()).plan(plan("b", did, false))).await;
    begin(&a, "night", &["acme"]).await;
    match hangs {
        true => until("it is in stage 3", async || did.lock().unwrap().contains(&"a s3".to_string())).await,
        false => drop(task_is(&a, "acme", TaskStatus::Completed).await),
    }
    a.shared().await;
    drop(a);
    is_gone(redis, "a").await;
    b
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_elsewhere_is_undone_once_newest_first() {
    let (redis, did) = (RedisServer::start(), Did::default());
    let b = left(&redis, &did, true).await;
    b.take_up("acme").await.unwrap().roll_back().await.unwrap();
    task_is(&b, "acme", TaskStatus::RolledBack).await;
    assert_eq!(*did.lock().unwrap(), ["a s1", "a s2", "a s3", "b undoes s1 with a-acme"]);
    until("the lock is free", async || text(&redis, "lock:tenant:acme").is_none()).await;
    mirror_is_true(&b, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_here_and_elsewhere_is_undone_newest_first() {
    let (redis, did) = (RedisServer::start(), Did::default());
    let b = left(&redis, &did, true).await;
    b.retry_task_by_tenant("acme", true).await.unwrap();
    task_is(&b, "acme", TaskStatus::Completed).await;
    did.lock().unwrap().clear();
    b.take_up("acme").await.unwrap().roll_back().await.unwrap();
    task_is(&b, "acme", TaskStatus::RolledBack).await;
    let did = did.lock().unwrap().clone();
    assert_eq!(did.iter().map(|line| line.split(' ').nth(2).unwrap()).collect::<Vec<_>>(), ["s4", "s3", "s1"], "{did:?}");
    mirror_is_true(&b, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_stages_of_a_task_that_has_completed_elsewhere_are_undone() {
    let (redis, did) = (RedisServer::start(), Did::default());
    let b = left(&redis, &did, false).await;
    did.lock().unwrap().clear();
    b.take_up("acme").await.unwrap().roll_back().await.unwrap();
    task_is(&b, "acme", TaskStatus::RolledBack).await;
    let did = did.lock().unwrap().clone();
    assert_eq!(did.iter().map(|line| line.split(' ').nth(2).unwrap()).collect::<Vec<_>>(), ["s4", "s3", "s1"], "{did:?}");
    mirror_is_true(&b, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_called_off_elsewhere_and_nothing_is_undone() {
    let (redis, did) = (RedisServer::start(), Did::default());
    let b = left(&redis, &did, true).await;
    b.take_up("acme").await.unwrap().cancel().await.unwrap();
    task_is(&b, "acme", TaskStatus::Cancelled).await;
    assert_eq!(*did.lock().unwrap(), ["a s1", "a s2", "a s3"]);
    until("the lock is free", async || text(&redis, "lock:tenant:acme").is_none()).await;
    mirror_is_true(&b, &redis).await;
}

/// Nobody knows what of it is undone.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_was_being_rolled_back_does_not_go_on_from_its_checkpoint() {
    let (redis, did) = (RedisServer::start(), Did::default());
    let stuck = |name: &'static str| {
        let (done, undone) = (did.clone(), did.clone());
        Plan::new("switch")
            .stage("s1", move |_: Task| {
                done.lock().unwrap().push(format!("{name} s1"));
                async { Ok::<_, Failure>(()) }
            })
            .undo(move |_| {
                undone.lock().unwrap().push(format!("{name} undoes s1"));
                async move {
                    if name == "a" {
                        std::future::pending::<()>().await;
                    }
                    Ok::<_, Failure>(())
                }
            })
            .stage("s2", |_: Task| async { Ok::<_, Failure>(()) })
    };
    let a = start(instance(&redis, "a", &Memory::new()).plan(stuck("a"))).await;
    let b = start(instance(&redis, "b", &Memory::new()).plan(stuck("b"))).await;
    let c = start(instance(&redis, "c", &Memory::new()).plan(stuck("c"))).await;
    let plan = begin(&a, "night", &["acme", "other"]).await;
    plan.ended().await.unwrap();
    plan.roll_back().await.unwrap();
    until("both are being undone", async || did.lock().unwrap().iter().filter(|line| *line == "a undoes s1").count() == 2).await;
    a.shared().await;
    drop((plan, a));
    is_gone(&redis, "a").await;
    for tenant in ["acme", "other"] {
        let refused = b.retry_task_by_tenant(tenant, true).await.unwrap_err();
        assert!(refused.to_string().contains("some of what it did is undone"), "{refused}");
    }
    b.take_up("acme").await.unwrap().roll_back().await.unwrap();
    task_is(&b, "acme", TaskStatus::RolledBack).await;
    c.retry_task_by_tenant("other", false).await.unwrap();
    task_is(&c, "other", TaskStatus::Completed).await;
    assert_eq!(did.lock().unwrap().iter().filter(|line| *line == "c s1").count(), 1);
    mirror_is_true(&b, &redis).await;
    mirror_is_true(&c, &redis).await;
}
