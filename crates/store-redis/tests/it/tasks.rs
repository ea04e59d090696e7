//! Tasks: who owns them decides who may write.

use crate::help::*;
use steadfast_kernel::TaskStatus;
use steadfast_store::{AsOf, Commons, SharedTask, TaskField, Write, Wrote};
use steadfast_store_redis::Redis;
use steadfast_test_servers::RedisServer;

fn stored() -> SharedTask {
    SharedTask {
        task: task(),
        tenant: tenant(),
        plan: plan(),
        status: TaskStatus::Pending,
        pause_requested: false,
        created_at: at(100),
        started_at: None,
        definition: "switch".into(),
        definition_hash: "abc".into(),
        owner: Some(instance("a")),
        fence: 0,
    }
}

fn adopt(from: Option<&str>, fence: u64, to: Option<&str>, new: u64) -> Write {
    Write::Adopt { task: task(), from: (from.map(instance), fence), to: to.map(instance), fence: new }
}

fn not_yours(owner: Option<&str>, fence: u64) -> Wrote {
    Wrote::NotYours { owner: owner.map(instance), fence }
}

async fn read(redis: &Redis) -> SharedTask {
    redis.tasks(&[task()]).await.unwrap().remove(0)
}

#[tokio::test]
async fn a_task_is_read_as_it_was_written() {
    let server = RedisServer::start();
    let redis = open(&server);
    assert_eq!(redis.tasks(&[task()]).await.unwrap(), []);
    assert_eq!(send(&redis, whole_task("a", 0)).await, Wrote::Done);
    assert_eq!(read(&redis).await, stored());
}

#[tokio::test]
async fn an_update_of_a_task_touches_its_own_fields_only() {
    let server = RedisServer::start();
    let redis = open(&server);
    send(&redis, whole_task("a", 0)).await;
    let key = format!("executor:task:{}", task());
    server.cli(&["HSET", &key, "note", "by hand", "definitionHash", "other"]);
    let fields = vec![
        (TaskField::Status, "RUNNING".into()),
        (TaskField::PauseRequested, "true".into()),
        (TaskField::StartedAt, at(130).to_string()),
    ];
    let update = Write::Task { task: task(), owner: instance("a"), fence: 3, fields, whole: false, as_of: None };
    assert_eq!(send(&redis, update).await, Wrote::Done);
    let expected = SharedTask {
        status: TaskStatus::Running,
        pause_requested: true,
        started_at: Some(at(130)),
        definition_hash: "other".into(),
        fence: 3,
        ..stored()
    };
    assert_eq!(read(&redis).await, expected);
    assert_eq!(server.cli(&["HGET", &key, "note"]).text(), "by hand");
    assert_eq!(send(&redis, whole_task("a", 3)).await, Wrote::Done);
    assert_eq!(read(&redis).await.started_at, None, "a whole task takes away what it no longer has");
}

#[tokio::test]
async fn an_update_of_a_task_that_is_not_there_makes_none() {
    let server = RedisServer::start();
    let redis = open(&server);
    assert_eq!(send(&redis, status("a", 1, "RUNNING")).await, Wrote::Missing);
    assert_eq!(send(&redis, adopt(Some("a"), 1, Some("b"), 2)).await, Wrote::Missing);
    assert!(server.keys().is_empty());
}

#[tokio::test]
async fn only_the_owner_with_the_last_fence_writes() {
    let server = RedisServer::start();
    let redis = open(&server);
    send(&redis, whole_task("a", 5)).await;
    assert_eq!(send(&redis, status("a", 4, "FAILED")).await, not_yours(Some("a"), 5), "a lower fence");
    assert_eq!(send(&redis, status("b", 5, "FAILED")).await, not_yours(Some("a"), 5), "another owner with this fence");
    assert_eq!(send(&redis, status("b", 4, "FAILED")).await, not_yours(Some("a"), 5), "another owner with a lower fence");
    assert_eq!(send(&redis, whole_task("b", 5)).await, not_yours(Some("a"), 5), "a whole task too");
    assert_eq!(read(&redis).await.status, TaskStatus::Pending);
    assert_eq!(send(&redis, status("b", 6, "RUNNING")).await, Wrote::Done, "a higher fence has the lock");
    let now = read(&redis).await;
    assert_eq!((now.owner, now.fence, now.status), (Some(instance("b")), 6, TaskStatus::Running));
    assert_eq!(send(&redis, status("a", 5, "FAILED")).await, not_yours(Some("b"), 6));
}

#[tokio::test]
async fn fences_are_compared_as_numbers_of_any_size() {
    let server = RedisServer::start();
    let redis = open(&server);
    send(&redis, whole_task("a", 9)).await;
    assert_eq!(send(&redis, status("a", 10, "RUNNING")).await, Wrote::Done);
    let big = 9_007_199_254_740_993; // one more than a double can hold
    assert_eq!(send(&redis, status("a", big, "RUNNING")).await, Wrote::Done);
    assert_eq!(send(&redis, status("a", big - 1, "RUNNING")).await, not_yours(Some("a"), big));
    assert_eq!(send(&redis, status("a", u64::MAX, "RUNNING")).await, Wrote::Done);
    assert_eq!(read(&redis).await.fence, u64::MAX);
}

#[tokio::test]
async fn a_task_is_adopted_once() {
    let server = RedisServer::start();
    let redis = open(&server);
    send(&redis, whole_task("a", 1)).await;
    assert_eq!(send(&redis, adopt(Some("a"), 1, Some("b"), 2)).await, Wrote::Done);
    assert_eq!(send(&redis, adopt(Some("a"), 1, Some("b"), 2)).await, Wrote::Done, "the second time changes nothing");
    assert_eq!(send(&redis, adopt(Some("a"), 1, Some("c"), 3)).await, not_yours(Some("b"), 2));
    assert_eq!(send(&redis, adopt(Some("b"), 1, Some("c"), 3)).await, not_yours(Some("b"), 2));
    assert_eq!(send(&redis, status("a", 1, "FAILED")).await, not_yours(Some("b"), 2), "the old owner touches nothing");
    assert_eq!(read(&redis).await, SharedTask { owner: Some(instance("b")), fence: 2, ..stored() });
}

#[tokio::test]
async fn a_task_that_was_handed_over_is_nobodys_until_somebody_adopts_it() {
    let server = RedisServer::start();
    let redis = open(&server);
    send(&redis, whole_task("a", 4)).await;
    assert_eq!(send(&redis, adopt(Some("a"), 4, None, 0)).await, Wrote::Done);
    assert_eq!(read(&redis).await, SharedTask { owner: None, fence: 4, ..stored() }, "the fence never falls");
    assert_eq!(server.cli(&["HGET", &format!("executor:task:{}", task()), "owner"]).text(), "");
    assert_eq!(send(&redis, status("a", 4, "RUNNING")).await, not_yours(None, 4), "who has handed it over has it no more");
    assert_eq!(send(&redis, adopt(None, 3, Some("b"), 5)).await, not_yours(None, 4));
    assert_eq!(send(&redis, adopt(None, 4, Some("b"), 5)).await, Wrote::Done);
    assert_eq!(read(&redis).await, SharedTask { owner: Some(instance("b")), fence: 5, ..stored() });
}

#[tokio::test]
async fn those_tasks_that_are_there_come_in_order() {
    let server = RedisServer::start();
    let redis = open(&server);
    for name in ["x", "y"] {
        let task = task_of(name);
        let write = Write::Task { owner: instance("a"), fence: 0, fields: task_fields(&task), whole: true, as_of: None, task };
        send(&redis, write).await;
    }
    let found = redis.tasks(&["y", "none", "x", "y"].map(task_of)).await.unwrap();
    let names: Vec<_> = found.into_iter().map(|found| found.task).collect();
    assert_eq!(names, ["y", "x", "y"].map(task_of));
    assert_eq!(redis.tasks(&[]).await.unwrap(), []);
}

/// Its fence says nothing of two states within one holding, nor of a task that was removed and made again.
#[tokio::test]
async fn a_late_write_of_a_former_writer_of_the_same_name_is_refused() {
    let server = RedisServer::start();
    let redis = open(&server);
    let told = |owner: &str, fence, made: i64, seq| {
        let fields = vec![(TaskField::PauseRequested, "true".to_owned())];
        Write::Task { task: task(), owner: instance(owner), fence, fields, whole: false, as_of: Some(AsOf { made: at(made), seq }) }
    };
    send(&redis, whole_task("a", 3)).await;
    let refused = |fence| Wrote::NotYours { owner: Some(instance("a")), fence };
    for (owner, fence, made, seq, outcome) in [
        ("a", 2, 1, 9, refused(3)), // what is there says nothing of its state: the fence counts
        ("a", 3, 1, 10, Wrote::Done),
        ("a", 3, 1, 9, refused(3)),
        ("a", 3, 1, 100, Wrote::Done),
        ("b", 4, 1, 101, refused(3)),
        ("a", 0, 2, 1, Wrote::Done),
        ("a", 3, 1, 102, refused(0)),
    ] {
        assert_eq!(send(&redis, told(owner, fence, made, seq)).await, outcome, "{owner} {made}:{seq}");
    }
}
