//! Which keys there are: their names, types and how long they live.

use crate::help::*;
use std::time::Duration;
use steadfast_store::Commons;
use steadfast_store_redis::{Redis, Settings};
use steadfast_test_servers::RedisServer;

/// Name without the prefix, type, and for how many seconds it lives; -1 is for ever.
fn expected(ttl: i64, heartbeat: i64) -> Vec<(&'static str, &'static str, i64)> {
    vec![
        ("ckpt:switch/1/acme", "string", ttl),
        ("fence:tenant:acme", "string", -1),
        ("index:tenant:acme", "string", ttl),
        ("instance:a", "string", heartbeat),
        ("lock:tenant:acme", "string", 9000),
        ("plan:switch/1", "hash", ttl),
        ("task:switch/1/acme", "hash", ttl),
    ]
}

fn check(server: &RedisServer, prefix: &str, expected: &[(&str, &str, i64)]) {
    let names: Vec<String> = expected.iter().map(|(name, ..)| format!("{prefix}{name}")).collect();
    assert_eq!(server.keys(), names);
    for (name, (_, kind, seconds)) in names.iter().zip(expected) {
        assert_eq!(server.cli(&["TYPE", name]).text(), *kind, "{name}");
        let left = server.cli(&["TTL", name]).number();
        let most = 60.min(*seconds - 1);
        assert!(left <= *seconds && left >= seconds - most.max(0), "{name} lives for {left} s instead of {seconds}");
    }
}

#[tokio::test]
async fn every_key_has_its_name_its_type_and_its_ttl() {
    let server = RedisServer::start();
    let redis = open(&server);
    redis.send(one_of_each()).await.unwrap();
    check(&server, "executor:", &expected(7 * 24 * 3600, 30));
}

#[tokio::test]
async fn every_key_obeys_changed_settings() {
    let server = RedisServer::start();
    let changed = Settings {
        prefix: "my[app]*:".into(),
        ttl: Duration::from_secs(5000),
        heartbeat_ttl: Duration::from_secs(100),
        ..settings(&server)
    };
    let redis = Redis::open(changed).unwrap();
    redis.send(one_of_each()).await.unwrap();
    check(&server, "my[app]*:", &expected(5000, 100));
    server.cli(&["SET", "myaXX:instance:other", "1"]);
    let mut found = Vec::new();
    let mut from = 0;
    loop {
        let (next, piece) = redis.instances(from).await.unwrap();
        found.extend(piece);
        from = next;
        if from == 0 {
            break;
        }
    }
    assert_eq!(found, [instance("a")], "characters of patterns in the prefix stand for themselves");
    assert_eq!(redis.alive(&[instance("a")]).await.unwrap().len(), 1);
    assert!(redis.plan(&plan()).await.unwrap().is_some());
    assert_eq!(redis.tasks(&[task()]).await.unwrap().len(), 1);
    assert!(redis.checkpoint(&task()).await.unwrap().is_some());
    assert_eq!(redis.task_of(&tenant()).await.unwrap(), Some(task()));
    assert_eq!(redis.fence(&tenant()).await.unwrap(), 1);
    assert_eq!(redis.locks(&[tenant()]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn each_write_renews_the_life_of_its_key() {
    let server = RedisServer::start();
    let redis = open(&server);
    redis.send(one_of_each()).await.unwrap();
    for name in ["ckpt:switch/1/acme", "index:tenant:acme", "instance:a", "lock:tenant:acme", "plan:switch/1", "task:switch/1/acme"] {
        server.cli(&["EXPIRE", &format!("executor:{name}"), "10"]);
    }
    let mut again = one_of_each();
    again.push(status("a", 0, "RUNNING"));
    redis.send(again).await.unwrap();
    check(&server, "executor:", &expected(7 * 24 * 3600, 30));
}
