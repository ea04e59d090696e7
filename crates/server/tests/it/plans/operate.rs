//! What operators do to plans.

use super::{How, one, types};
use crate::support::{Site, until};
use serde_json::{Value, json};

#[tokio::test]
async fn a_plan_is_started_and_completes() {
    let site = Site::new().await;
    let plan = site.switch("p", &["a", "b"]).await;
    assert!(plan["startedAt"].as_str().unwrap().ends_with('Z'), "{plan}");
    let plan = site.plan_is("p", "COMPLETED").await;
    assert_eq!((&plan["progress"]["completed"], &plan["progress"]["pending"]), (&json!(2), &json!(0)));
    assert!(plan["endedAt"].is_string() && plan.get("cause").is_none(), "{plan}");
    let line = &plan["tenants"][1];
    assert_eq!((&line["status"], &line["lastCompletedStageIndex"], &line["hasCheckpoint"]), (&json!("COMPLETED"), &json!(2), &json!(true)));
    let journal = site.get("/v1/runs/p/b/events").await.json();
    assert_eq!(
        (&line["startedAt"], &line["endedAt"]),
        (&one(&journal, "TASK_STARTED")["timestamp"], &one(&journal, "RUN_COMPLETED")["timestamp"])
    );
    let events = site.get("/v1/plans/p/events").await.json();
    let started = one(&events, "PLAN_STARTED");
    assert_eq!((&started["payload"]["by"], &started["payload"]["reason"]), (&json!("api"), &json!("tonight")));
    assert_eq!(types(&events).last(), Some(&"PLAN_COMPLETED"));
    let changed = one(&events, "TASK_CHANGED");
    assert_eq!((&changed["payload"]["run"], &changed["payload"]["status"]), (&json!("p/a"), &json!("PENDING")));
    for verb in ["start", "pause", "resume", "cancel"] {
        assert_eq!(site.post(&format!("/v1/plans/p/{verb}"), json!({})).await.problem(409), "SF0125", "{verb}");
    }
}

#[tokio::test]
async fn the_journal_of_a_plan_can_be_asked_for_from_a_place_on() {
    let site = Site::new().await;
    site.switch("p", &["a", "b"]).await;
    site.plan_is("p", "COMPLETED").await;
    let all = site.get("/v1/plans/p/events").await.json();
    let count = all.as_array().unwrap().len();
    assert_eq!(
        all.as_array().unwrap().iter().map(|event| event["sequence"].as_u64().unwrap()).collect::<Vec<_>>(),
        (1..=count as u64).collect::<Vec<_>>()
    );
    assert_eq!(site.get("/v1/plans/p/events?after=2&limit=1").await.json(), json!([all[2]]));
    assert_eq!(site.get(&format!("/v1/plans/p/events?after={count}")).await.json(), json!([]), "there is nothing after the end");
    for query in ["limit=0", "limit=1001", "after=x", "attempt=1"] {
        assert_eq!(site.get(&format!("/v1/plans/p/events?{query}")).await.problem(400), "SF0501", "{query}");
    }
}

#[tokio::test]
async fn a_plan_is_paused_and_resumed() {
    let site = Site::new().await;
    site.world.script("a/move", &[How::Ails]);
    site.create("p", &["a", "b"]).await;
    for verb in ["pause", "resume", "rollback"] {
        assert_eq!(site.post(&format!("/v1/plans/p/{verb}"), json!({})).await.problem(409), "SF0125", "{verb}: it was not started");
    }
    site.verb("/v1/plans/p/start", "go").await;
    let task = site.task_is("a", "WAITING").await;
    assert_eq!((&task["wait"]["reason"], &task["wait"]["failure"]["message"]), (&json!("BACKOFF"), &json!("a/move is busy")));
    let plan = site.verb("/v1/plans/p/pause", "the gateway is sick").await;
    assert_eq!((&plan["status"], &plan["cause"], &plan["by"]), (&json!("PAUSED"), &json!("PERSON"), &json!("api")));
    assert_eq!(plan["why"], "the gateway is sick");
    let task = site.task_is("a", "PAUSED").await;
    assert_eq!((&task["pauseRequested"], &task["lastCompletedStageIndex"]), (&json!(true), &json!(0)));
    let line = site.get("/v1/plans/p").await.json()["tenants"][0].clone();
    assert_eq!((&line["pauseRequested"], &line["currentStage"]), (&json!(true), &json!({"index": 1, "name": "move"})));
    assert_eq!(site.post("/v1/plans/p/start", json!({})).await.problem(409), "SF0125", "it was started");
    assert_eq!(site.verb("/v1/plans/p/resume", "it is back").await["status"], "RUNNING");
    assert_eq!(site.task_is("a", "WAITING").await["pauseRequested"], false);
    let line = site.get("/v1/plans/p").await.json()["tenants"][0].clone();
    assert_eq!((&line["wait"], &line["failure"].as_str().map(|why| why.starts_with("a/move is busy"))), (&json!("BACKOFF"), &Some(true)));
}

#[tokio::test]
async fn a_plan_is_called_off() {
    let site = Site::new().await;
    site.world.script("a/move", &[How::Hangs]);
    site.switch("p", &["a", "b"]).await;
    until("a moves and b is done", async || {
        site.world.times("a/move") == 1 && site.get("/v1/tenants/b/task").await.json()["status"] == "COMPLETED"
    })
    .await;
    site.verb("/v1/plans/p/cancel", "wrong night").await;
    let plan = site.plan_is("p", "CANCELLED").await;
    assert_eq!((&plan["progress"]["cancelled"], &plan["progress"]["completed"]), (&json!(1), &json!(1)));
    assert_eq!(site.world.times("a/drain/undo"), 0, "nothing is undone");
    site.lock_is("a", None).await;
}

#[tokio::test]
async fn a_plan_is_rolled_back() {
    let site = Site::new().await;
    site.world.script("b/verify", &[How::Fails]);
    site.switch("p", &["a", "b"]).await;
    site.plan_is("p", "FAILED").await;
    site.world.script("b/drain/undo", &[How::Hangs]);
    let plan = site.verb("/v1/plans/p/rollback", "it does not work").await;
    assert_eq!((&plan["status"], &plan["cause"]), (&json!("RUNNING"), &json!("ROLLBACK")));
    until("b is being undone", async || site.world.times("b/drain/undo") == 1).await;
    let task = site.task_is("a", "ROLLED_BACK").await;
    assert_eq!((&task["lastCompletedStageIndex"], &task["currentStage"]), (&Value::Null, &Value::Null), "nothing of it is done any more");
    assert_eq!((&task["hasCheckpoint"], &site.get("/v1/tenants/a/checkpoint").await.problem(404)), (&json!(false), &"SF0129".into()));
    assert_eq!(site.get("/v1/plans/p").await.json()["progress"]["rollingBack"], 1);
    assert_eq!(site.post("/v1/plans/p/pause", json!({})).await.problem(409), "SF0125", "what is being ended cannot be paused");
    assert_eq!(site.post("/v1/plans/p/cancel", json!({})).await.problem(409), "SF0125");
}

#[tokio::test]
async fn a_command_to_a_plan_that_is_sent_again_is_one() {
    let site = Site::new().await;
    site.world.script("a/drain", &[How::Hangs]);
    site.create("p", &["a"]).await;
    let count = async |kind: &str| {
        let events: Value = site.get("/v1/plans/p/events").await.json();
        types(&events).iter().filter(|one| **one == kind).count()
    };
    let say = async |verb: &str, key: &str| site.keyed(&format!("/v1/plans/p/{verb}"), key, json!({"reason": "x"})).await.status.as_u16();
    assert_eq!(say("start", "k1").await, 200);
    assert_eq!(say("pause", "k2").await, 200);
    assert_eq!(say("start", "k1").await, 200, "it was done, whatever happened after it");
    assert_eq!(say("resume", "k3").await, 200);
    assert_eq!(say("pause", "k2").await, 200);
    assert_eq!((count("PLAN_PAUSED").await, site.get("/v1/plans/p").await.json()["status"].clone()), (1, json!("RUNNING")));
    assert_eq!(say("pause", "k4").await, 200);
    assert_eq!((count("PLAN_STARTED").await, count("PLAN_PAUSED").await, count("PLAN_RESUMED").await), (1, 2, 1));
    let events = site.get("/v1/plans/p/events").await.json();
    assert_eq!(one(&events, "PLAN_PAUSED")["payload"]["command"], "k2");
    for verb in ["start", "pause", "resume", "cancel", "rollback"] {
        let path = format!("/v1/plans/p/{verb}");
        assert_eq!(site.keyed(&path, &"x".repeat(300), json!({})).await.problem(400), "SF0501", "{verb}");
        assert_eq!(site.post(&path, json!({"why": "x"})).await.problem(400), "SF0501", "{verb}");
        assert_eq!(site.post(&format!("/v1/plans/none/{verb}"), json!({})).await.problem(404), "SF0124", "{verb}");
    }
}

#[tokio::test]
async fn a_plan_does_not_start_over_tenants_that_were_locked_meanwhile() {
    let site = Site::new().await;
    site.create("late", &["a", "b"]).await;
    site.world.script("a/drain", &[How::Fails]);
    site.switch("early", &["a"]).await;
    site.plan_is("early", "FAILED").await;
    let got = site.post("/v1/plans/late/start", json!({})).await;
    assert_eq!((got.problem(409), &got.json()["locked"]), ("SF0126".into(), &json!([{"tenantId": "a", "holder": "early:early/a"}])));
    site.verb("/v1/tenants/a/cancel", "no").await;
    assert_eq!(site.get("/v1/tenants/a/task").await.json()["planId"], "early");
}
