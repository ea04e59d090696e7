//! Compares names, types and content of all keys with the committed snapshot.

use crate::help::*;
use std::fmt::Write as _;
use steadfast_store::{AsOf, Commons, PlanField, TaskField, Write};
use steadfast_test_servers::RedisServer;
use steadfast_test_snapshots::assert_snapshot;

#[tokio::test]
async fn keys_match_snapshot() {
    let server = RedisServer::start();
    let redis = open(&server);
    redis
        .send(one_of_each().into_iter().chain([started_plan(), started_task()]).collect())
        .await
        .unwrap();
    let (plan, tasks) = (redis.plan(&plan()).await.unwrap().unwrap(), redis.tasks(&[task()]).await.unwrap());
    assert!(plan.started_at.is_some() && tasks[0].started_at.is_some(), "every optional field is there");
    let keys: String = server.keys().iter().map(|key| block(&server, key)).collect();
    assert_snapshot("redis-keys.txt", &keys);
}

fn as_of() -> Option<AsOf> {
    Some(AsOf { made: at(100), seq: 7 })
}

fn started_plan() -> Write {
    let fields = vec![(PlanField::StartedAt, at(120).to_string())];
    Write::Plan { plan: plan(), owner: instance("a"), fields, whole: false, as_of: as_of() }
}

fn started_task() -> Write {
    let fields = vec![(TaskField::StartedAt, at(120).to_string())];
    Write::Task { task: task(), owner: instance("a"), fence: 1, fields, whole: false, as_of: as_of() }
}

/// A key with its type, its lifetime and its value; a line per field of a hash.
fn block(server: &RedisServer, key: &str) -> String {
    let kind = server.cli(&["TYPE", key]);
    let lives = if server.cli(&["TTL", key]).number() == -1 { "forever" } else { "for a time" };
    let mut text = format!("{key}\n  type: {}\n  lives: {lives}\n", kind.text());
    if kind.text() == "hash" {
        let fields = server.cli(&["HGETALL", key]).texts();
        let mut pairs: Vec<&[String]> = fields.chunks(2).collect();
        pairs.sort_unstable();
        for pair in pairs {
            writeln!(text, "  field {}: {}", pair[0], pair[1]).unwrap();
        }
    } else {
        writeln!(text, "  value: {}", server.cli(&["GET", key]).text()).unwrap();
    }
    text
}
