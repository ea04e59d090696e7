//! What others can read in Redis is what an instance knows itself: every plan, task, index, checkpoint, lock and number.
//!
//! Subject: `crates/runtime/src/commons/mirror.rs`.
//! Subject: `crates/runtime/src/commons/image.rs`.

use super::until;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use steadfast::{Engine, RunRow, TaskStatus};
use steadfast_test_servers::{RedisServer, Reply};

/// Waits until all that Redis says of what is this instance's is so, and says what is not if that never comes.
pub(crate) async fn mirror_is_true(engine: &Engine, redis: &RedisServer) {
    let patience = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        let wrong = differences(engine, redis).await;
        if wrong.is_empty() {
            return;
        }
        assert!(tokio::time::Instant::now() < patience, "Redis says something else than {}:\n{}", me(engine), wrong.join("\n"));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

fn me(engine: &Engine) -> String {
    engine.sharing().unwrap().instance.to_string()
}

/// The fields of a hash; none if it is not there.
pub(crate) fn hash(redis: &RedisServer, key: &str) -> BTreeMap<String, String> {
    let parts = redis.cli(&["HGETALL", &format!("executor:{key}")]).texts();
    parts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

/// A text; nothing if it is not there.
pub(crate) fn text(redis: &RedisServer, key: &str) -> Option<String> {
    match redis.cli(&["GET", &format!("executor:{key}")]) {
        Reply::Text(text) => Some(text),
        Reply::Nil => None,
        other => panic!("{key} is no text: {other:?}"),
    }
}

async fn differences(engine: &Engine, redis: &RedisServer) -> Vec<String> {
    let mut wrong = Vec::new();
    let rows = tasks(engine).await;
    for row in &rows {
        of_task(engine, redis, row, &mut wrong).await;
    }
    let mut plans: Vec<_> = rows.iter().filter_map(|row| Some(row.task.as_ref()?.plan.to_string())).collect();
    plans.dedup();
    for plan in plans {
        of_plan(engine, redis, &plan, &mut wrong).await;
    }
    of_locks(engine, redis, &mut wrong).await;
    of_indexes(redis, &rows, &mut wrong);
    wrong
}

async fn tasks(engine: &Engine) -> Vec<RunRow> {
    let (mut rows, mut page) = (Vec::new(), engine.list().limit(200).await.unwrap());
    loop {
        rows.append(&mut page.items);
        let Some(next) = page.next else { break };
        page = engine.list().limit(200).after(&next).await.unwrap();
    }
    rows.retain(|row| row.task.is_some());
    rows
}

async fn of_task(engine: &Engine, redis: &RedisServer, row: &RunRow, wrong: &mut Vec<String>) {
    let there = hash(redis, &format!("task:{}", row.run));
    let view = engine.run(row.run.as_str()).unwrap().view().await.unwrap();
    let task = view.task.unwrap();
    let mut expect = |what: &str, there: Option<&String>, here: Option<String>| {
        if there != here.as_ref() {
            wrong.push(format!("{what} of task {}: {here:?} here, {there:?} there", row.run));
        }
    };
    if task.status == TaskStatus::HandedOver {
        expect("that it is another's", Some(&(there.get("owner") == Some(&me(engine))).to_string()), Some("false".into()));
        return;
    }
    expect("owner", there.get("owner"), Some(me(engine)));
    expect("status", there.get("status"), Some(task.status.as_str().into()));
    expect("tenantId", there.get("tenantId"), row.tenant.clone());
    expect("planId", there.get("planId"), Some(task.options.plan.to_string()));
    expect("pauseRequested", there.get("pauseRequested"), Some(task.pause_requested.to_string()));
    expect("startedAt", there.get("startedAt"), task.started_at.map(|at| at.to_string()));
    if let Some(lock) = &task.lock {
        expect("fence", there.get("fence"), Some(lock.fence.to_string()));
    }
    let saved = text(redis, &format!("ckpt:{}", row.run)).map(|json| serde_json::from_str::<Value>(&json).unwrap());
    let field = |name: &str| saved.as_ref().map(|saved| saved[name].to_string());
    let here = task.checkpoint.as_ref();
    expect("index", field("lastCompletedStageIndex").as_ref(), here.map(|saved| saved.index.to_string()));
    expect("version", field("version").as_ref(), here.map(|saved| saved.version.to_string()));
    expect("time", field("savedAt").as_ref(), here.map(|saved| format!("\"{}\"", saved.saved_at)));
    let data = here.map(|saved| serde_json::from_slice::<Value>(&saved.data.bytes).unwrap().to_string());
    expect("data", field("contextData").as_ref(), data);
    let done: Option<Vec<&String>> = here.map(|saved| task.options.stages.iter().take(saved.index as usize + 1).collect());
    expect("stages", field("completedStages").as_ref(), done.map(|done| serde_json::to_string(&done).unwrap()));
    expect("fence of the checkpoint", field("fence").as_ref(), here.and_then(|_| there.get("fence").cloned()));
}

async fn of_plan(engine: &Engine, redis: &RedisServer, plan: &str, wrong: &mut Vec<String>) {
    let info = engine.plan_status(plan).await.unwrap();
    if info.elsewhere.is_some() {
        return; // it has a task of it, and not the plan
    }
    let there = hash(redis, &format!("plan:{plan}"));
    let mut expect = |what: &str, here: Option<String>| {
        if there.get(what) != here.as_ref() {
            wrong.push(format!("{what} of plan {plan}: {here:?} here, {:?} there", there.get(what)));
        }
    };
    expect("owner", Some(me(engine)));
    expect("status", Some(info.status.as_str().into()));
    expect("taskIds", Some(serde_json::to_string(&info.tasks).unwrap()));
    expect("maxConcurrency", Some(info.max_concurrency.to_string()));
    expect("createdAt", Some(info.created_at.to_string()));
    expect("startedAt", info.started_at.map(|at| at.to_string()));
}

/// Locks are the same here and there, and nobody has a number that is above the counter.
async fn of_locks(engine: &Engine, redis: &RedisServer, wrong: &mut Vec<String>) {
    let me = me(engine);
    let locks = engine.locks().await.unwrap().into_iter();
    let mut here: BTreeMap<String, String> = locks
        .map(|lock| (lock.tenant.to_string(), format!("{}:{}:{me}:{}", lock.lease.plan, lock.lease.task, lock.lease.fence)))
        .collect();
    let keys = redis.keys();
    for tenant in keys.iter().filter_map(|key| key.strip_prefix("executor:lock:tenant:")) {
        let Some(there) = text(redis, &format!("lock:tenant:{tenant}")) else { continue };
        let fence: u64 = there.rsplit(':').next().unwrap().parse().unwrap();
        let last: u64 = text(redis, &format!("fence:tenant:{tenant}")).map_or(0, |last| last.parse().unwrap());
        if fence > last {
            wrong.push(format!("the lock of {tenant} has number {fence}, the last one is {last}"));
        }
        if there.split(':').nth(2) == Some(me.as_str()) && here.remove(tenant).as_ref() != Some(&there) {
            wrong.push(format!("the lock of {tenant} is {there} there, and not here"));
        }
    }
    wrong.extend(
        here.into_iter()
            .map(|(tenant, holder)| format!("the lock of {tenant} is {holder} here, and not there")),
    );
}

/// A tenant's index names one of its tasks, and none was made later; of those that two instances make at the same time it is either.
fn of_indexes(redis: &RedisServer, rows: &[RunRow], wrong: &mut Vec<String>) {
    const SAME_TIME: i64 = 1_000_000;
    let keys = redis.keys();
    let names = keys.iter().filter_map(|key| key.strip_prefix("executor:task:"));
    let tasks: BTreeMap<&str, _> = names.map(|task| (task, hash(redis, &format!("task:{task}")))).collect();
    let made_at = |task: &BTreeMap<String, String>| micros(&task["createdAt"]);
    let tenants: BTreeSet<&String> = rows.iter().filter_map(|row| row.tenant.as_ref()).collect();
    for tenant in tenants {
        let of_it = |task: &&BTreeMap<String, String>| task.get("tenantId") == Some(tenant);
        let last = tasks.values().filter(of_it).map(made_at).max();
        let there = text(redis, &format!("index:tenant:{tenant}"));
        let named = there.as_deref().and_then(|there| tasks.get(there)).filter(of_it).map(made_at);
        if named.zip(last).is_none_or(|(named, last)| named + SAME_TIME < last) {
            wrong.push(format!("the index of {tenant} says {there:?}, which is not its last task"));
        }
    }
}

/// A time of one and the same day or so, in microseconds.
pub(crate) fn micros(at: &str) -> i64 {
    let number = |text: &str| text.parse::<i64>().unwrap();
    let at = at.trim_end_matches('Z');
    let (seconds, fraction) = at.split_once('.').unwrap_or((at, ""));
    let (day, time) = seconds.split_once('T').unwrap();
    let seconds = time.split(':').fold(0, |seconds, part| seconds * 60 + number(part));
    let days = day.split('-').fold(0, |days, part| days * 31 + number(part));
    (days * 86_400 + seconds) * 1_000_000 + number(&format!("{fraction:0<6}")[..6])
}

/// Waits until a lock in Redis is so.
pub(crate) async fn lock_is(redis: &RedisServer, tenant: &str, is_so: impl Fn(Option<&str>) -> bool) {
    until(&format!("the lock of {tenant} is so"), async || is_so(text(redis, &format!("lock:tenant:{tenant}")).as_deref())).await;
}
