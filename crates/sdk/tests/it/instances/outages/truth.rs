//! After healing, what Redis says of what is an instance's is true: all of what may go on is there, and of what has ended nothing else than its end.
//!
//! Subject: `crates/runtime/src/commons/mirror.rs`.

use std::collections::BTreeMap;
use steadfast::{Engine, RunRow, TaskStatus};
use steadfast_test_servers::{RedisServer, Reply};

/// Waits until that is so, and says what is not if it never is.
pub(super) async fn mirror_is_true(engine: &Engine, redis: &RedisServer) {
    let patience = tokio::time::Instant::now() + std::time::Duration::from_secs(15);
    loop {
        let wrong = wrong(engine, redis).await;
        if wrong.is_empty() {
            return;
        }
        assert!(tokio::time::Instant::now() < patience, "Redis does not say the truth:\n{}", wrong.join("\n"));
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

fn me(engine: &Engine) -> String {
    engine.sharing().unwrap().instance.to_string()
}

pub(super) fn hash(redis: &RedisServer, key: &str) -> BTreeMap<String, String> {
    let parts = redis.cli(&["HGETALL", &format!("executor:{key}")]).texts();
    parts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

pub(super) fn text(redis: &RedisServer, key: &str) -> Option<String> {
    match redis.cli(&["GET", &format!("executor:{key}")]) {
        Reply::Text(text) => Some(text),
        _ => None,
    }
}

/// The number of the last holding, as Redis knows it.
pub(super) fn fence(redis: &RedisServer, tenant: &str) -> u64 {
    text(redis, &format!("fence:tenant:{tenant}")).map_or(0, |fence| fence.parse().unwrap())
}

async fn wrong(engine: &Engine, redis: &RedisServer) -> Vec<String> {
    let (mut wrong, mut rows) = (Vec::new(), Vec::new());
    let mut page = engine.list().limit(200).await.unwrap();
    loop {
        rows.append(&mut page.items);
        let Some(next) = page.next else { break };
        page = engine.list().limit(200).after(&next).await.unwrap();
    }
    for row in &rows {
        of_task(engine, redis, row, &mut wrong).await;
        of_index(redis, row, &rows, &mut wrong);
    }
    let mut plans: Vec<_> = rows.iter().filter_map(|row| Some(row.task.as_ref()?.plan.to_string())).collect();
    plans.sort();
    plans.dedup();
    for plan in plans {
        let (info, there) = (engine.plan_status(&plan).await.unwrap(), hash(redis, &format!("plan:{plan}")));
        if info.elsewhere.is_none() && !(there.is_empty() && info.status.is_final()) {
            let tasks = serde_json::to_string(&info.tasks).unwrap();
            let here = [("status", info.status.as_str()), ("owner", &me(engine)), ("taskIds", &tasks)];
            compare(&format!("plan {plan}"), &there, &here, &mut wrong);
        }
    }
    of_locks(engine, redis, &mut wrong).await;
    wrong
}

fn compare(what: &str, there: &BTreeMap<String, String>, here: &[(&str, &str)], wrong: &mut Vec<String>) {
    for (field, here) in here {
        let there = there.get(*field).map(String::as_str);
        if there != Some(here) {
            wrong.push(format!("{field} of {what}: {here} here, {there:?} there"));
        }
    }
}

fn may_go_on(status: TaskStatus) -> bool {
    !status.is_final() || matches!(status, TaskStatus::Failed | TaskStatus::RollbackFailed)
}

async fn of_task(engine: &Engine, redis: &RedisServer, row: &RunRow, wrong: &mut Vec<String>) {
    let Some(task) = engine.run(row.run.as_str()).unwrap().view().await.unwrap().task else { return };
    let (run, there) = (&row.run, hash(redis, &format!("task:{}", row.run)));
    let saved = text(redis, &format!("ckpt:{run}")).map(|json| serde_json::from_str::<serde_json::Value>(&json).unwrap());
    if task.status == TaskStatus::HandedOver {
        let is_mine = there.get("owner") == Some(&me(engine));
        return wrong.extend(is_mine.then(|| format!("task {run} is another's here, and not there")));
    }
    if there.is_empty() && !may_go_on(task.status) {
        return;
    }
    let (pause, tenant) = (task.pause_requested.to_string(), row.tenant.clone().unwrap_or_default());
    let here = [("status", task.status.as_str()), ("owner", &me(engine)), ("pauseRequested", &pause), ("tenantId", &tenant)];
    compare(&format!("task {run}"), &there, &here, wrong);
    let is = saved.as_ref().map(|saved| (saved["lastCompletedStageIndex"].as_u64(), saved["version"].as_u64()));
    let should = task.checkpoint.as_ref().map(|saved| (Some(u64::from(saved.index)), Some(saved.version)));
    if is != should {
        wrong.push(format!("checkpoint of {run}: {should:?} here, {is:?} there"));
    }
}

/// If the last task of a tenant may go on, it is what is found by the tenant.
fn of_index(redis: &RedisServer, row: &RunRow, rows: &[RunRow], wrong: &mut Vec<String>) {
    let (Some(tenant), Some(task)) = (&row.tenant, &row.task) else { return };
    let is_last = !rows.iter().any(|other| other.tenant == row.tenant && other.started_at > row.started_at);
    let there = text(redis, &format!("index:tenant:{tenant}"));
    if is_last && may_go_on(task.status) && there.as_deref() != Some(row.run.as_str()) {
        wrong.push(format!("the index of {tenant} says {there:?}, the last task is {}", row.run));
    }
}

/// Locks are the same here and there, and nobody has a number that is above the counter.
async fn of_locks(engine: &Engine, redis: &RedisServer, wrong: &mut Vec<String>) {
    let me = me(engine);
    let mut here = BTreeMap::new();
    for lock in engine.locks().await.unwrap() {
        here.insert(lock.tenant.to_string(), format!("{}:{}:{me}:{}", lock.lease.plan, lock.lease.task, lock.lease.fence));
    }
    let keys = redis.keys();
    for tenant in keys.iter().filter_map(|key| key.strip_prefix("executor:lock:tenant:")) {
        let Some(there) = text(redis, &format!("lock:tenant:{tenant}")) else { continue };
        let number: u64 = there.rsplit(':').next().unwrap().parse().unwrap();
        if number > fence(redis, tenant) {
            wrong.push(format!("the lock of {tenant} has number {number}, the last one is {}", fence(redis, tenant)));
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
