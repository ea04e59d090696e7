//! Plans, the index of tenants, and instances.

use crate::help::*;
use steadfast_kernel::{Payload, PlanStatus};
use steadfast_store::{AsOf, Commons, PlanField, SharedPlan, Write, Wrote};
use steadfast_test_servers::{RedisServer, Reply};

fn some(owner: &str, fields: &[(PlanField, &str)]) -> Write {
    let fields = fields.iter().map(|(field, value)| (*field, (*value).to_owned())).collect();
    Write::Plan { plan: plan(), owner: instance(owner), fields, whole: false, as_of: None }
}

fn stored() -> SharedPlan {
    SharedPlan {
        plan: plan(),
        status: PlanStatus::Ready,
        tasks: vec![task()],
        max_concurrency: 5,
        created_at: at(100),
        started_at: None,
        definition: "switch".into(),
        definition_hash: "abc".into(),
        vars: Payload::json(r#"{"gateway": "g"}"#),
        owner: instance("a"),
    }
}

#[tokio::test]
async fn a_plan_is_read_as_it_was_written() {
    let server = RedisServer::start();
    let redis = open(&server);
    assert_eq!(redis.plan(&plan()).await.unwrap(), None);
    assert_eq!(send(&redis, whole_plan("a")).await, Wrote::Done);
    assert_eq!(redis.plan(&plan()).await.unwrap(), Some(stored()));
    assert_eq!(server.cli(&["HGET", "executor:plan:switch/1", "createdAt"]).text(), "1970-01-01T00:01:40Z");
}

#[tokio::test]
async fn an_update_of_a_plan_touches_its_own_fields_only() {
    let server = RedisServer::start();
    let redis = open(&server);
    send(&redis, whole_plan("a")).await;
    server.cli(&["HSET", "executor:plan:switch/1", "note", "by hand", "maxConcurrency", "9"]);
    let update = some("a", &[(PlanField::Status, "RUNNING"), (PlanField::StartedAt, "1970-01-01T00:02:00Z")]);
    assert_eq!(send(&redis, update).await, Wrote::Done);
    let expected = SharedPlan { status: PlanStatus::Running, max_concurrency: 9, started_at: Some(at(120)), ..stored() };
    assert_eq!(redis.plan(&plan()).await.unwrap(), Some(expected));
    assert_eq!(server.cli(&["HGET", "executor:plan:switch/1", "note"]).text(), "by hand");
}

#[tokio::test]
async fn a_whole_plan_takes_away_what_it_no_longer_has_and_nothing_else() {
    let server = RedisServer::start();
    let redis = open(&server);
    send(&redis, whole_plan("a")).await;
    send(&redis, some("a", &[(PlanField::StartedAt, "1970-01-01T00:02:00Z")])).await;
    server.cli(&["HSET", "executor:plan:switch/1", "note", "by hand"]);
    assert_eq!(send(&redis, whole_plan("a")).await, Wrote::Done);
    assert_eq!(redis.plan(&plan()).await.unwrap(), Some(stored()));
    assert_eq!(server.cli(&["HGET", "executor:plan:switch/1", "note"]).text(), "by hand");
}

#[tokio::test]
async fn a_plan_of_another_instance_is_left_alone() {
    let server = RedisServer::start();
    let redis = open(&server);
    send(&redis, whole_plan("a")).await;
    let refused = Wrote::NotYours { owner: Some(instance("a")), fence: 0 };
    assert_eq!(send(&redis, whole_plan("b")).await, refused);
    assert_eq!(send(&redis, some("b", &[(PlanField::Status, "FAILED")])).await, refused);
    assert_eq!(redis.plan(&plan()).await.unwrap(), Some(stored()));
}

#[tokio::test]
async fn an_update_of_a_plan_that_is_not_there_makes_none() {
    let server = RedisServer::start();
    let redis = open(&server);
    assert_eq!(send(&redis, some("a", &[(PlanField::Status, "RUNNING")])).await, Wrote::Missing);
    assert!(server.keys().is_empty());
}

#[tokio::test]
async fn the_last_task_of_a_tenant_is_found() {
    let server = RedisServer::start();
    let redis = open(&server);
    let index = |task, unless_there| Write::Index { tenant: tenant(), task, unless_there };
    assert_eq!(redis.task_of(&tenant()).await.unwrap(), None);
    assert_eq!(send(&redis, index(task_of("one"), true)).await, Wrote::Done);
    assert_eq!(redis.task_of(&tenant()).await.unwrap(), Some(task_of("one")));
    assert_eq!(send(&redis, index(task_of("two"), false)).await, Wrote::Done);
    server.cli(&["PEXPIRE", "executor:index:tenant:acme", "50000"]);
    assert_eq!(send(&redis, index(task_of("three"), true)).await, Wrote::Done);
    assert_eq!(redis.task_of(&tenant()).await.unwrap(), Some(task_of("two")));
    assert!(server.cli(&["PTTL", "executor:index:tenant:acme"]).number() > 50_000, "one that is left alone lives on");
}

#[tokio::test]
async fn a_beat_says_what_was_there_and_another_life_is_left_alone() {
    let server = RedisServer::start();
    let redis = open(&server);
    assert_eq!(send(&redis, beat("a", "life 1")).await, Wrote::Before(None));
    assert_eq!(send(&redis, beat("a", "life 1")).await, Wrote::Before(Some("life 1".into())));
    assert_eq!(send(&redis, beat("a", "life 2")).await, Wrote::Before(Some("life 1".into())));
    let leave = |says: &str| Write::Leave { instance: instance("a"), says: says.into() };
    assert_eq!(send(&redis, leave("life 1")).await, Wrote::NotYours { owner: Some(instance("a")), fence: 0 });
    assert_eq!(redis.alive(&[instance("a")]).await.unwrap(), [instance("a")]);
    assert_eq!(send(&redis, leave("life 2")).await, Wrote::Done);
    assert_eq!(redis.alive(&[instance("a")]).await.unwrap(), []);
    assert_eq!(send(&redis, leave("life 2")).await, Wrote::Missing);
}

#[tokio::test]
async fn an_instance_that_no_longer_beats_does_not_live() {
    let server = RedisServer::start();
    let redis = open(&server);
    redis.send(vec![beat("a", "1"), beat("b", "1"), beat("c", "1")]).await.unwrap();
    assert_eq!(server.cli(&["PEXPIRE", "executor:instance:b", "0"]), Reply::Number(1));
    let asked = ["c", "b", "x", "a"].map(instance);
    assert_eq!(redis.alive(&asked).await.unwrap(), [instance("c"), instance("a")]);
    assert_eq!(redis.alive(&[]).await.unwrap(), []);
}

#[tokio::test]
async fn instances_are_found_piece_by_piece_among_many_other_keys() {
    let server = RedisServer::start();
    let redis = open(&server);
    server.cli(&["EVAL", "for i = 1, 5000 do redis.call('SET', 'other:instance:' .. i, 'x') end", "0"]);
    server.cli(&["SET", "executor:instance:not an id", "x"]);
    let names: Vec<String> = (0..50).map(|number| format!("i-{number:02}")).collect();
    redis.send(names.iter().map(|name| beat(name, "1")).collect()).await.unwrap();
    let (mut from, mut pieces, mut found) = (0, 0, std::collections::BTreeSet::new());
    loop {
        let (next, piece) = redis.instances(from).await.unwrap();
        found.extend(piece.iter().map(|instance| instance.as_str().to_owned()));
        pieces += 1;
        from = next;
        if from == 0 {
            break;
        }
    }
    assert_eq!(found.into_iter().collect::<Vec<_>>(), names);
    assert!((3..50).contains(&pieces), "{pieces}");
}

#[tokio::test]
async fn what_is_older_than_what_is_there_is_refused_where_several_write_under_one_name() {
    let server = RedisServer::start();
    let redis = open(&server);
    let told = |made: i64, seq: u64, status: &str| {
        let fields = vec![(PlanField::Status, status.to_owned())];
        Write::Plan { plan: plan(), owner: instance("a"), fields, whole: false, as_of: Some(AsOf { made: at(made), seq }) }
    };
    let refused = Wrote::NotYours { owner: Some(instance("a")), fence: 0 };
    assert_eq!(send(&redis, told(1, 9, "RUNNING")).await, Wrote::Missing);
    send(&redis, whole_plan("a")).await;
    for (made, seq, status, outcome) in [
        (1, 9, "RUNNING", Wrote::Done),
        (1, 9, "RUNNING", Wrote::Done),
        (1, 8, "CREATED", refused.clone()),
        (1, 10, "COMPLETED", Wrote::Done),
        (2, 1, "CREATED", Wrote::Done), // another plan of that id, which is made later
        (1, 11, "FAILED", refused),
    ] {
        assert_eq!(send(&redis, told(made, seq, status)).await, outcome, "{made}:{seq}");
    }
    assert_eq!(server.cli(&["HGET", &format!("executor:plan:{}", plan()), "status"]), Reply::Text("CREATED".into()));
}
