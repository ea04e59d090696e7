//! What none of us has put there is left alone, and keeps nothing else back.

use crate::help::*;
use steadfast_store::{Commons, CommonsError, TaskField, Write, Wrote};
use steadfast_store_redis::Redis;
use steadfast_test_servers::RedisServer;

/// Every kind of write that compares, on the keys of one plan, task and tenant.
fn writes() -> Vec<(&'static str, Write)> {
    let (task, tenant) = (task(), tenant());
    vec![
        ("instance:a", Write::Leave { instance: instance("a"), says: "1".into() }),
        ("plan:switch/1", whole_plan("a")),
        ("task:switch/1/acme", whole_task("a", 1)),
        ("task:switch/1/acme", status("a", 1, "RUNNING")),
        ("task:switch/1/acme", Write::Adopt { task: task.clone(), from: (None, 1), to: Some(instance("a")), fence: 2 }),
        ("index:tenant:acme", Write::Index { tenant: tenant.clone(), task: task.clone(), unless_there: false }),
        ("index:tenant:acme", Write::Index { tenant: tenant.clone(), task: task.clone(), unless_there: true }),
        ("ckpt:switch/1/acme", save(1, 1)),
        ("ckpt:switch/1/acme", Write::DropCheckpoint { task, fence: 1 }),
        ("fence:tenant:acme", Write::NextFence { tenant: tenant.clone(), above: 0 }),
        ("fence:tenant:acme", Write::RaiseFence { tenant: tenant.clone(), to: 5 }),
        ("lock:tenant:acme", take(holder("a", 1))),
        ("lock:tenant:acme", Write::RenewLock { tenant: tenant.clone(), holder: holder("a", 1), lease: LEASE }),
        ("lock:tenant:acme", Write::ReleaseLock { tenant, holder: holder("a", 0) }),
    ]
}

async fn read(redis: &Redis, kind: &str) -> Result<(), CommonsError> {
    match kind.split(':').next().unwrap() {
        "plan" => redis.plan(&plan()).await.map(drop),
        "task" => redis.tasks(&[task()]).await.map(drop),
        "index" => redis.task_of(&tenant()).await.map(drop),
        "ckpt" => redis.checkpoint(&task()).await.map(drop),
        "fence" => redis.fence(&tenant()).await.map(drop),
        "lock" => redis.locks(&[tenant()]).await.map(drop),
        _ => redis.alive(&[instance("a")]).await.map(drop),
    }
}

/// Puts something there, and sees that every write and every read leaves it alone and says so.
async fn left_alone(server: &RedisServer, redis: &Redis, kind: &str, put: &[&str]) {
    let key = format!("executor:{kind}");
    server.flush();
    server.cli(put);
    let before = server.cli(&["DUMP", &key]);
    for (_, write) in writes().into_iter().filter(|(of, _)| *of == kind) {
        let wrote = redis.send(vec![beat("b", "1"), write.clone(), beat("c", "1")]).await.unwrap();
        assert_eq!(wrote[1], Wrote::Foreign { key: key.clone() }, "{write:?} on {put:?}");
        assert_eq!(redis.alive(&["b", "c"].map(instance)).await.unwrap().len(), 2, "the others are carried out");
    }
    assert_eq!(server.cli(&["DUMP", &key]), before);
    assert_eq!(server.cli(&["PTTL", &key]).number(), -1);
    assert_eq!(read(redis, kind).await, Err(CommonsError::Foreign { key }), "{put:?}");
}

#[tokio::test]
async fn a_key_of_another_type_is_left_alone() {
    let server = RedisServer::start();
    let redis = open(&server);
    for kind in [
        "instance:a",
        "plan:switch/1",
        "task:switch/1/acme",
        "index:tenant:acme",
        "ckpt:switch/1/acme",
        "fence:tenant:acme",
        "lock:tenant:acme",
    ] {
        left_alone(&server, &redis, kind, &["RPUSH", &format!("executor:{kind}"), "x"]).await;
    }
    server.cli(&["RPUSH", "executor:instance:list", "x"]);
    assert_eq!(send(&redis, beat("list", "1")).await, Wrote::Foreign { key: "executor:instance:list".into() });
}

#[tokio::test]
async fn a_text_that_is_not_ours_is_left_alone() {
    let server = RedisServer::start();
    let redis = open(&server);
    for garbage in
        ["hello world", "", "{}", "\u{1F600}", r#"{"version":1,"fence":1}"#, r#"[,"version":1,"fence":1}"#, "a:b:c", "a:b:c:d", "-1", "1.5"]
    {
        for kind in ["ckpt:switch/1/acme", "fence:tenant:acme", "lock:tenant:acme"] {
            left_alone(&server, &redis, kind, &["SET", &format!("executor:{kind}"), garbage]).await;
        }
    }
    let long = "x".repeat(129);
    for garbage in ["hello world", "", "{}", "a:b", &long] {
        left_alone(&server, &redis, "index:tenant:acme", &["SET", "executor:index:tenant:acme", garbage]).await;
    }
}

#[tokio::test]
async fn a_lock_of_names_that_cannot_be_is_foreign() {
    let server = RedisServer::start();
    let redis = open(&server);
    for garbage in ["a b:t:i:1", "p:t:i/j:1", "p:t:i:99999999999999999999999999"] {
        left_alone(&server, &redis, "lock:tenant:acme", &["SET", "executor:lock:tenant:acme", garbage]).await;
    }
}

#[tokio::test]
async fn a_hash_that_is_not_ours_is_left_alone() {
    let server = RedisServer::start();
    let redis = open(&server);
    let (plan, task) = ("executor:plan:switch/1", "executor:task:switch/1/acme");
    for put in [vec!["HSET", plan, "x", "y"], vec!["HSET", plan, "owner", ""], vec!["HSET", plan, "owner", "not an id"]] {
        left_alone(&server, &redis, "plan:switch/1", &put).await;
    }
    for put in [
        vec!["HSET", task, "x", "y"],
        vec!["HSET", task, "owner", "a"],
        vec!["HSET", task, "fence", "1"],
        vec!["HSET", task, "owner", "a", "fence", "one"],
        vec!["HSET", task, "owner", "a", "fence", "-1"],
        vec!["HSET", task, "owner", "a b", "fence", "7"],
        vec!["HSET", task, "owner", "a", "fence", "99999999999999999999999999"],
    ] {
        left_alone(&server, &redis, "task:switch/1/acme", &put).await;
    }
}

#[tokio::test]
async fn every_field_that_does_not_fit_is_noticed() {
    let server = RedisServer::start();
    let redis = open(&server);
    let task_key = format!("executor:task:{}", task());
    for (field, value) in [
        ("taskId", "other"),
        ("tenantId", "a b"),
        ("planId", ""),
        ("status", "DONE"),
        ("pauseRequested", "yes"),
        ("createdAt", "yesterday"),
        ("createdAt", "1969-12-31T23:59:59Z"),
        ("startedAt", ""),
        ("owner", "a b"),
        ("fence", "-1"),
    ] {
        send(&redis, whole_task("a", 1)).await;
        server.cli(&["HSET", &task_key, field, value]);
        assert_eq!(redis.tasks(&[task()]).await, Err(CommonsError::Foreign { key: task_key.clone() }), "{field} is {value:?}");
        server.flush();
    }
    for field in ["planId", "status", "taskIds", "maxConcurrency", "createdAt", "startedAt", "vars", "owner"] {
        send(&redis, whole_plan("a")).await;
        server.cli(&["HSET", "executor:plan:switch/1", field, "{ this is wrong everywhere"]);
        assert_eq!(redis.plan(&plan()).await, Err(CommonsError::Foreign { key: "executor:plan:switch/1".into() }), "{field}");
        server.flush();
    }
    for field in ["definition", "definitionHash", "createdAt"] {
        send(&redis, whole_plan("a")).await;
        server.cli(&["HDEL", "executor:plan:switch/1", field]);
        assert_eq!(redis.plan(&plan()).await, Err(CommonsError::Foreign { key: "executor:plan:switch/1".into() }), "no {field}");
        server.flush();
    }
}

#[tokio::test]
async fn a_task_that_another_has_changed_by_hand_goes_on() {
    let server = RedisServer::start();
    let redis = open(&server);
    send(&redis, whole_task("a", 7)).await;
    server.cli(&["HSET", &format!("executor:task:{}", task()), "fence", "007"]);
    let write = Write::Task {
        task: task(),
        owner: instance("a"),
        fence: 7,
        fields: vec![(TaskField::Status, "RUNNING".into())],
        whole: false,
        as_of: None,
    };
    assert_eq!(send(&redis, write).await, Wrote::Done, "007 is 7");
}
