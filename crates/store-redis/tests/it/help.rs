//! What the tests have in common: a server, two instances, a plan with a task.

use std::time::Duration;
use steadfast_kernel::{InstanceId, Payload, PlanId, RunId, TenantId, Timestamp};
use steadfast_store::{Commons, CommonsError, LockHolder, PlanField, SharedCheckpoint, TaskField, Write, Wrote};
use steadfast_store_redis::{Redis, Settings};
use steadfast_test_servers::RedisServer;

/// Long enough for a slow machine, short enough for a test.
pub(crate) const LEASE: Duration = Duration::from_secs(9000);

pub(crate) fn settings(server: &RedisServer) -> Settings {
    Settings { response_timeout: Duration::from_secs(20), connect_timeout: Duration::from_secs(20), ..Settings::new(server.url()) }
}

pub(crate) fn open(server: &RedisServer) -> Redis {
    Redis::open(settings(server)).unwrap()
}

pub(crate) async fn send(redis: &Redis, write: Write) -> Wrote {
    let wrote = redis.send(vec![write]).await.unwrap();
    assert_eq!(wrote.len(), 1);
    wrote.into_iter().next().unwrap()
}

pub(crate) fn why(error: &CommonsError) -> String {
    error.to_string()
}

pub(crate) fn is_away<T>(result: &Result<T, CommonsError>) -> bool {
    matches!(result, Err(CommonsError::Away { .. }))
}

pub(crate) fn instance(name: &str) -> InstanceId {
    InstanceId::new(name).unwrap()
}

pub(crate) fn plan() -> PlanId {
    PlanId::new("switch/1").unwrap()
}

pub(crate) fn task() -> RunId {
    task_of("acme")
}

pub(crate) fn task_of(tenant: &str) -> RunId {
    RunId::new(format!("switch/1/{tenant}")).unwrap()
}

pub(crate) fn tenant() -> TenantId {
    TenantId::new("acme").unwrap()
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(second * 1_000_000)
}

pub(crate) fn plan_fields() -> Vec<(PlanField, String)> {
    vec![
        (PlanField::PlanId, plan().to_string()),
        (PlanField::Status, "READY".into()),
        (PlanField::TaskIds, format!("[\"{}\"]", task())),
        (PlanField::MaxConcurrency, "5".into()),
        (PlanField::CreatedAt, at(100).to_string()),
        (PlanField::Definition, "switch".into()),
        (PlanField::DefinitionHash, "abc".into()),
        (PlanField::Vars, r#"{"gateway": "g"}"#.into()),
    ]
}

pub(crate) fn whole_plan(owner: &str) -> Write {
    Write::Plan { plan: plan(), owner: instance(owner), fields: plan_fields(), whole: true, as_of: None }
}

pub(crate) fn task_fields(task: &RunId) -> Vec<(TaskField, String)> {
    vec![
        (TaskField::TaskId, task.to_string()),
        (TaskField::TenantId, tenant().to_string()),
        (TaskField::PlanId, plan().to_string()),
        (TaskField::Status, "PENDING".into()),
        (TaskField::PauseRequested, "false".into()),
        (TaskField::CreatedAt, at(100).to_string()),
        (TaskField::Definition, "switch".into()),
        (TaskField::DefinitionHash, "abc".into()),
    ]
}

pub(crate) fn whole_task(owner: &str, fence: u64) -> Write {
    Write::Task { task: task(), owner: instance(owner), fence, fields: task_fields(&task()), whole: true, as_of: None }
}

pub(crate) fn status(owner: &str, fence: u64, status: &str) -> Write {
    Write::Task { task: task(), owner: instance(owner), fence, fields: vec![(TaskField::Status, status.into())], whole: false, as_of: None }
}

pub(crate) fn checkpoint(fence: u64, version: u64) -> SharedCheckpoint {
    SharedCheckpoint {
        index: 0,
        completed: vec!["drain".into()],
        data: Payload::json(r#"{"drained":7}"#),
        saved_at: at(200),
        version,
        fence,
    }
}

pub(crate) fn save(fence: u64, version: u64) -> Write {
    Write::Checkpoint { task: task(), checkpoint: Box::new(checkpoint(fence, version)) }
}

pub(crate) fn holder(name: &str, fence: u64) -> LockHolder {
    LockHolder { plan: plan(), task: task(), instance: instance(name), fence }
}

pub(crate) fn take(holder: LockHolder) -> Write {
    Write::TakeLock { tenant: tenant(), holder, lease: LEASE, instead_of: None }
}

pub(crate) fn beat(name: &str, says: &str) -> Write {
    Write::Beat { instance: instance(name), says: says.into() }
}

/// One of each kind of write, so that every key is there.
pub(crate) fn one_of_each() -> Vec<Write> {
    vec![
        beat("a", "life 1"),
        whole_plan("a"),
        whole_task("a", 0),
        Write::Index { tenant: tenant(), task: task(), unless_there: false },
        save(1, 1),
        Write::NextFence { tenant: tenant(), above: 0 },
        take(holder("a", 1)),
    ]
}
